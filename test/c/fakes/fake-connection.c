/* The functions of cnats, and of wire/settings.c, that the library calls. */
#include "fake-connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

#define CRC_AT 6
#define CRC_END 10
#define MAX_PAYLOAD (8 * 1024 * 1024)

char fake_objects[2];
struct broker broker;

static void *copy_of(const void *bytes, size_t count) {
  void *copy = malloc(count == 0 ? 1 : count);
  if (copy == NULL) abort();
  if (count > 0) memcpy(copy, bytes, count);
  return copy;
}

/* Scenarios say everything themselves, whatever the environment has. */
const char *ps_from_environment(const char *name) {
  (void)name;
  return NULL;
}

natsMsg *make_message(const char *subject, const void *data, size_t bytes) {
  natsMsg *message = copy_of(&(natsMsg){.bytes = (int)bytes}, sizeof *message);
  message->subject = copy_of(subject, strlen(subject) + 1);
  message->data = copy_of(data, bytes);
  return message;
}

void deliver_message(natsMsg *message) {
  bool is_control = strstr(message->subject, "-control.") != NULL;
  broker.on_message(CONNECTION, SUBSCRIPTION, message, is_control ? broker.control : broker.connection);
}

void break_off(void) {
  broker.on_disconnected(CONNECTION, broker.connection);
  broker.on_disconnected(CONTROL_CONNECTION, broker.control);
}

void make_anew(void) {
  broker.on_reconnected(CONNECTION, broker.connection);
  broker.on_reconnected(CONTROL_CONNECTION, broker.control);
}

void seal_bytes(uint8_t *data, size_t bytes) {
  if (bytes < CRC_END) return;
  uint32_t crc = ps_crc32_update(ps_crc32_update(0, data, CRC_AT), data + CRC_END, bytes - CRC_END);
  ps_seal_message(data, crc);
}

pserver_status ps_make_nats_options(const pserver_options *options, const char *name,
                                    natsOptions **made) {
  (void)options;
  (void)name;
  *made = OPTIONS;
  return PSERVER_OK;
}

void ps_shown_address(const pserver_options *options, char *target, size_t room) {
  snprintf(target, room, "%s", options->url);
}

natsStatus natsOptions_SetTimeout(natsOptions *options, int64_t timeout) {
  (void)options;
  (void)timeout;
  return NATS_OK;
}

natsStatus natsOptions_SetClosedCB(natsOptions *options, natsConnectionHandler handler, void *closure) {
  (void)options;
  broker.on_closed = handler;
  if (broker.connection == NULL) broker.connection = closure;
  else broker.control = closure;
  broker.client = broker.connection->listener->owner;
  return NATS_OK;
}

natsStatus natsOptions_SetDisconnectedCB(natsOptions *options, natsConnectionHandler handler,
                                         void *closure) {
  (void)options;
  (void)closure;
  broker.on_disconnected = handler;
  return NATS_OK;
}

natsStatus natsOptions_SetReconnectedCB(natsOptions *options, natsConnectionHandler handler,
                                        void *closure) {
  (void)options;
  (void)closure;
  broker.on_reconnected = handler;
  return NATS_OK;
}

natsStatus natsOptions_SetErrorHandler(natsOptions *options, natsErrHandler handler, void *closure) {
  (void)options;
  (void)closure;
  broker.on_error = handler;
  return NATS_OK;
}

void natsOptions_Destroy(natsOptions *options) { (void)options; }

natsStatus natsOptions_SetSendAsap(natsOptions *options, bool is_asap) {
  (void)options;
  (void)is_asap;
  return NATS_OK;
}

natsStatus natsConnection_Connect(natsConnection **connection, natsOptions *options) {
  (void)options;
  *connection = broker.control == NULL ? CONNECTION : CONTROL_CONNECTION;
  return NATS_OK;
}

natsStatus natsConnection_Subscribe(natsSubscription **subscription, natsConnection *connection,
                                    const char *subject, natsMsgHandler handler, void *closure) {
  (void)connection;
  (void)subject;
  (void)closure;
  *subscription = SUBSCRIPTION;
  broker.on_message = handler;
  return NATS_OK;
}

natsStatus natsSubscription_SetOnCompleteCB(natsSubscription *subscription, natsOnCompleteCB handler,
                                            void *closure) {
  (void)subscription;
  (void)closure;
  broker.on_complete = handler;
  return NATS_OK;
}

natsStatus natsSubscription_SetPendingLimits(natsSubscription *subscription, int messages, int bytes) {
  (void)subscription;
  (void)messages;
  (void)bytes;
  return NATS_OK;
}

natsStatus natsConnection_Flush(natsConnection *connection) {
  (void)connection;
  return NATS_OK;
}

natsStatus natsConnection_FlushTimeout(natsConnection *connection, int64_t timeout) {
  (void)connection;
  (void)timeout;
  return NATS_OK;
}

int64_t natsConnection_GetMaxPayload(natsConnection *connection) {
  (void)connection;
  return broker.max_payload == 0 ? MAX_PAYLOAD : broker.max_payload;
}

natsStatus natsConnection_GetLastError(natsConnection *connection, const char **text) {
  (void)connection;
  *text = broker.error;
  return NATS_OK;
}

natsStatus natsConnection_PublishRequest(natsConnection *connection, const char *subject,
                                         const char *reply, const void *data, int bytes) {
  (void)connection;
  return broker_takes(subject, reply, data, (size_t)bytes);
}

natsStatus natsConnection_Publish(natsConnection *connection, const char *subject, const void *data,
                                  int bytes) {
  (void)connection;
  return broker_takes(subject, "", data, (size_t)bytes);
}

void natsConnection_Close(natsConnection *connection) {
  void *closure = connection == CONNECTION ? broker.connection : broker.control;
  broker.client = NULL;
  broker.on_closed(connection, closure);
  if (broker.on_complete != NULL) broker.on_complete(closure);
}

void natsConnection_Destroy(natsConnection *connection) { (void)connection; }

void natsSubscription_Destroy(natsSubscription *subscription) { (void)subscription; }

const char *natsMsg_GetSubject(const natsMsg *message) { return message->subject; }

const char *natsMsg_GetData(const natsMsg *message) { return (const char *)message->data; }

int natsMsg_GetDataLength(const natsMsg *message) { return message->bytes; }

bool natsMsg_IsNoResponders(natsMsg *message) { return message->is_nobody; }

void natsMsg_Destroy(natsMsg *message) {
  if (message == NULL) return;
  free(message->subject);
  free(message->data);
  free(message);
}

const char *natsStatus_GetText(natsStatus status) { return status == NATS_OK ? "OK" : "Error"; }

const char *nats_GetLastError(natsStatus *status) {
  (void)status;
  return NULL;
}

uint32_t nats_GetVersionNumber(void) { return NATS_VERSION_REQUIRED_NUMBER; }

void nats_ReleaseThreadMemory(void) {}
