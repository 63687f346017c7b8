import sys

from rrn.io.pretrained import shipped
from tests.golden import write

for name in sys.argv[1:] or shipped():
    write(name)
    print(f"written: tests/golden/{name}.json")
