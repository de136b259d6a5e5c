/*
 * Adds one to "steps" for each line it is told, whatever happens to host and broker, and answers each
 * with what it reads then, the session it has, and whether the update is known to be applied.
 * Arguments: URLs with commas between them, job, trainer.
 */
#include <inttypes.h>
#include <pserver.h>
#include <string.h>

#include "expect.h"

#define RETRY_MS 400000

int main(int argc, char **argv) {
  EXPECT(argc == 4);
  char line[16];
  const char *name = "steps";
  float one = 1;
  pserver_options options;
  pserver_client *client = NULL;
  pserver_job_info info;
  pserver_options_init(&options);
  options.url = argv[1];
  options.job = argv[2];
  options.trainer = argv[3];
  options.connect_timeout_ms = RETRY_MS;
  EXPECT_OK(pserver_connect(&options, &client));
  printf("ready\n");
  fflush(stdout);
  pserver_tensor added = {PSERVER_FLOAT32, PSERVER_RANK_OF_PARAMETER, {0}, &one, sizeof one};
  while (fgets(line, sizeof line, stdin) != NULL) {
    float read = 0;
    pserver_tensor got = {PSERVER_FLOAT32, 0, {0}, &read, sizeof read};
    pserver_status pushed = pserver_push(client, name, &added, 1, 1, PSERVER_AS_IS, RETRY_MS);
    EXPECT(pushed == PSERVER_OK || pushed == PSERVER_ERR_OUTCOME_UNKNOWN);
    EXPECT_OK(pserver_get(client, &name, &got, 1, PSERVER_AS_IS, RETRY_MS));
    EXPECT_OK(pserver_job_status(client, &info, RETRY_MS));
    printf("%.0f %" PRIu64 " %s\n", (double)read, info.session,
           pushed == PSERVER_OK ? "applied" : "unknown");
    fflush(stdout);
  }
  EXPECT_OK(pserver_close(client, -1));
  return 0;
}
