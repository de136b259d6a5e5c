/* Writes a trainer's notes into the journal. */
#include "calls/client.h"
#include "push/note.h"
#include "push/parameter-update.h"
#include "push/sent-updates.h"

/** The shard whose journal takes a job's notes. */
#define NOTE_SHARD 0

static pserver_status check_rules(const struct ps_call *call) {
  uint64_t rules = ps_session_rules(&call->client->session);
  if (rules >= PS_RULES_WITH_NOTES) return PSERVER_OK;
  const char *job = call->client->identity.job;
  return ps_fail(PSERVER_ERR_UNSUPPORTED,
                 "note: job %s has version %u of the rules, without notes: raise it with \"pserver "
                 "upgrade-rules %s\", then connect again",
                 job, (unsigned)rules, job);
}

pserver_status pserver_note(pserver_client *handle, const pserver_note_entry *entries, size_t count,
                            int64_t timeout_ms) {
  struct ps_call call;
  pserver_status status = ps_call_begin(&call, handle, "pserver_note", timeout_ms, 0);
  if (status != PSERVER_OK) return status;
  status = ps_check_note(entries, count);
  if (status == PSERVER_OK) status = check_rules(&call);
  if (status == PSERVER_OK) {
    struct ps_parameter_update update = {.operation = PS_UPDATE_NOTE, .note = entries, .note_count = count};
    struct ps_update_source source = {.update = &update, .shard = NOTE_SHARD};
    struct ps_call_updates updates = {.sources = &source, .count = 1};
    status = ps_send_call(&call, &updates);
  }
  return ps_call_end(&call, status);
}
