"""Subject of `soname`: a vendor whose `libdot.so.1` adds up in double precision."""

from native import vendor

scaled_dot = vendor("double").scaled_dot
