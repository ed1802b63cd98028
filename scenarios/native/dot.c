/* libdot.so.1 of one vendor: the dot product, added up in ACCUMULATOR. */

float dot(const float *x, const float *y, int n) {
    ACCUMULATOR sum = 0;
    for (int i = 0; i < n; i++)
        sum += (ACCUMULATOR)x[i] * y[i];
    return (float)sum;
}
