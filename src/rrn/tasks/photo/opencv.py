"""OpenCV; if it is missing, an error that names the command to install it."""

import os
from importlib import import_module
from typing import Any

from rrn.errors import needs_extra

_environment = dict(os.environ)
try:
    cv2: Any = import_module("cv2")
except ImportError as error:
    raise needs_extra("reading photos", "vision") from error
for _name in set(os.environ) - set(_environment):  # OpenCV sets a library path for itself, which processes inherit
    del os.environ[_name]
os.environ.update(_environment)
