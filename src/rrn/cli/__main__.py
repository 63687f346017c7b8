import sys

from rrn.cli import main

sys.exit(main())
