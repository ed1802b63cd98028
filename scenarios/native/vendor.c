/* The library that a vendor's Python package loads; it needs libdot.so.1. */

float dot(const float *x, const float *y, int n);

float scaled_dot(const float *x, const float *y, int n) {
    return dot(x, y, n) / n;
}
