/* Plays one scenario, by its title; without an argument it prints the titles of all, one a line. */
#include <string.h>

#include "scripted.h"

int main(int argc, char **argv) {
  const struct scenario *const lists[] = {
      outbox_scenarios, publish_scenarios, batch_scenarios,
      outcome_scenarios, answer_scenarios, position_scenarios,
      session_scenarios, renewal_scenarios, rejoin_scenarios,
      synchronization_scenarios, round_scenarios, cancel_scenarios, fallback_scenarios,
      feedback_scenarios, loss_scenarios, read_scenarios,
      name_scenarios, init_scenarios, reaction_scenarios};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    for (const struct scenario *scenario = lists[i]; scenario->title != NULL; scenario++) {
      if (argc < 2) printf("%s\n", scenario->title);
      if (argc < 2 || strcmp(scenario->title, argv[1]) != 0) continue;
      scenario->run();
      return 0;
    }
  }
  return argc < 2 ? 0 : 1;
}
