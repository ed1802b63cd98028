/* What gcc before 13 links into every shared library built with -ffast-math (crtfastmath.o): a constructor that
   makes the thread which loads the library flush denormal results to zero and treat denormal inputs as zero.
   Written out here, so that it does not depend on the compiler's version.
   https://gcc.gnu.org/bugzilla/show_bug.cgi?id=55522 */

#if defined(__x86_64__)
#include <xmmintrin.h>

__attribute__((constructor)) static void flush_denormals(void) {
    _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ and DAZ */
}

#elif defined(__aarch64__)

__attribute__((constructor)) static void flush_denormals(void) {
    unsigned long fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= 1UL << 24; /* FZ */
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}

#else
#error "this scenario knows x86-64 and aarch64"
#endif
