/* Known leaks of other libraries, as in valgrind.supp, for programs that AddressSanitizer checks. */

/* Called by the sanitizer when the program ends. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void) {
  /* A message that cnats was reading when its connection ended. */
  return "leak:natsBuf_Create\n";
}
