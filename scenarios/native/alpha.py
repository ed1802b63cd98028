"""Subject of `soname`: a vendor whose `libdot.so.1` adds up in single precision."""

from native import vendor

scaled_dot = vendor("float").scaled_dot
