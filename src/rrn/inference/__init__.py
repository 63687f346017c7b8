"""Inference: attempts in slots, stopping rules, best-first search, results, and a service for many callers."""

from rrn.inference.result import Result, Status
from rrn.inference.service import BusyError, ClosedError, Service

__all__ = ["BusyError", "ClosedError", "Result", "Service", "Status"]
