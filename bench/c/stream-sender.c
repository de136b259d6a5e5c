/* Publishes to a stream; the bytes without a PubAck stay within the window. */
#include "stream-sender.h"

#include "counter.h"

static struct counter refused = COUNTER_INITIALIZER;

static void on_refused(jsCtx *js, jsPubAckErr *error, void *closure) {
  (void)js;
  (void)error;
  (void)closure;
  counter_add(&refused);
}

natsStatus stream_sender_open(jsCtx **js, natsConnection *connection,
                              const struct payloads *payloads) {
  jsOptions options;
  jsOptions_Init(&options);
  options.PublishAsync.MaxPending = (int64_t)payloads_window(payloads);
  options.PublishAsync.StallWait = WAIT_MAX_MS;
  options.PublishAsync.ErrHandler = on_refused;
  return natsConnection_JetStream(js, connection, &options);
}

natsStatus stream_sender_publish(jsCtx *js, const char *subject, struct payloads *payloads) {
  return js_PublishAsync(js, subject, payloads_next(payloads), (int)payloads->bytes, NULL);
}

natsStatus stream_sender_complete(jsCtx *js) {
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = WAIT_MAX_MS;
  return js_PublishAsyncComplete(js, &options);
}

bool stream_sender_is_ok(natsStatus status, const char *what, struct answer *answer) {
  if (refused.value > 0) return refuse(answer, "the stream refused messages");
  return nats_is_ok(status, what, answer);
}
