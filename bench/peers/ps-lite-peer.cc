// ps-lite: a scheduler, a server that applies plain SGD, and a worker that makes the training steps that
// the lines of the input ask for. The worker is the program that is started; the others are its children.
#include <arpa/inet.h>
#include <ps/ps.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "agent.h"
#include "step-data.h"

namespace {

using keys = ps::SArray<ps::Key>;
using floats = ps::SArray<float>;

/** Learning rate of all gradients. */
constexpr float RATE = 1e-3F;
/** The only application of the nodes, and the only customer of each. */
constexpr int APP = 0;
constexpr int CUSTOMER = 0;

/** The parameters on the server: values of one length, one after the other; a value's key is its place. */
class store {
 public:
  /** Replaces all values by zeros. */
  void create(std::size_t count, std::size_t length) {
    length_ = length;
    values_.assign(count * length, 0.0F);
  }

  /** Applies the gradients of a push, or answers a pull with a copy of the values. */
  void serve(const ps::KVMeta &request, const ps::KVPairs<float> &pairs,
             ps::KVServer<float> *server) {
    ps::KVPairs<float> answer;
    if (request.push) {
      const float *gradient = pairs.vals.data();
      for (const ps::Key key : pairs.keys) {
        float *value = &values_[key * length_];
        for (std::size_t i = 0; i < length_; i++) value[i] -= RATE * *gradient++;
      }
    } else {
      // A copy: an answer is sent after this has returned, when the next push may change the values.
      const std::size_t count = pairs.keys.size() * length_;
      answer.keys = pairs.keys;
      answer.vals = floats(new float[count], count, true);
      float *target = answer.vals.data();
      for (const ps::Key key : pairs.keys) {
        target = std::copy_n(&values_[key * length_], length_, target);
      }
    }
    server->Response(request, answer);
  }

 private:
  std::size_t length_ = 0;
  std::vector<float> values_;
};

/** Serves until all nodes end. */
void run_server() {
  store parameters;
  ps::KVServer<float> server(APP);
  server.set_request_handle([&parameters](const ps::KVMeta &request,
                                          const ps::KVPairs<float> &pairs,
                                          ps::KVServer<float> *to) {
    parameters.serve(request, pairs, to);
  });
  server.SimpleApp::set_request_handle(
      [&parameters](const ps::SimpleData &request, ps::SimpleApp *to) {
        std::istringstream words(request.body);
        std::size_t count = 0;
        std::size_t length = 0;
        words >> count >> length;
        parameters.create(count, length);
        to->Response(request);
      });
  ps::Finalize(CUSTOMER);
}

/** Sets what all nodes are told by their environment. */
void describe_nodes(int port) {
  setenv("DMLC_NUM_WORKER", "1", 1);
  setenv("DMLC_NUM_SERVER", "1", 1);
  setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
  setenv("DMLC_PS_ROOT_PORT", std::to_string(port).c_str(), 1);
  setenv("DMLC_NODE_HOST", "127.0.0.1", 1);
  // Would be the port of every node.
  unsetenv("PORT");
}

/** Joins the other nodes; returns when all have come. */
void join_nodes(const char *role) {
  setenv("DMLC_ROLE", role, 1);
  ps::Start(CUSTOMER);
}

/** Starts a node as a child, which ends with this process at the latest. False if that is impossible. */
bool start_node(const char *role) {
  const pid_t child = fork();
  if (child != 0) return child > 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The answers keep the output for themselves.
  dup2(STDERR_FILENO, STDOUT_FILENO);
  join_nodes(role);
  if (ps::IsServer()) {
    run_server();
  } else {
    ps::Finalize(CUSTOMER);
  }
  _exit(0);
}

/** Finds a TCP port of this machine that nobody listens on; 0, and errno, if there is none. */
int free_port() {
  sockaddr_in address = {};
  socklen_t bytes = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0) return 0;
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  const bool is_bound =
      bind(listener, generic, bytes) == 0 && getsockname(listener, generic, &bytes) == 0;
  close(listener);
  return is_bound ? ntohs(address.sin_port) : 0;
}

std::unique_ptr<ps::KVWorker<float>> worker;
/** Keys of the steps, which use them in turn. */
std::vector<keys> key_sets;
/** The gradients of a step, and the values that it pulls, in the order of its keys. */
floats gradients;
floats values;

/** Starts all nodes. Answer: the versions of ps-lite and of what it sends with. */
bool open_nodes(char **, struct answer *answer) {
  const int port = free_port();
  if (port == 0) return refuse(answer, "no free port: %s", std::strerror(errno));
  describe_nodes(port);
  if (!start_node("scheduler") || !start_node("server")) {
    return refuse(answer, "fork: %s", std::strerror(errno));
  }
  join_nodes("worker");
  worker = std::make_unique<ps::KVWorker<float>>(APP, CUSTOMER);
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  std::snprintf(answer->text, sizeof answer->text, "ps-lite_%s,_ZeroMQ_%d.%d.%d", PS_LITE_VERSION,
                major, minor, patch);
  return true;
}

/** Creates values of one length on the server, and the tensors of steps that use `of_step` of them. */
void create(std::size_t count, std::size_t length, std::size_t of_step) {
  const std::string body = std::to_string(count) + " " + std::to_string(length);
  worker->Wait(worker->Request(0, body, ps::kServerGroup));
  gradients.reset(make_floats(of_step * length), of_step * length, std::free);
  values.reset(make_floats(of_step * length), of_step * length, std::free);
  key_sets.clear();
}

/** Creates the parameters of a step of whole tensors. Arguments: parameters, elements of each. */
bool create_dense(char **arguments, struct answer *) {
  const std::size_t count = std::strtoull(arguments[0], nullptr, 10);
  create(count, std::strtoull(arguments[1], nullptr, 10), count);
  keys all;
  all.resize(count);
  for (std::size_t i = 0; i < count; i++) all.data()[i] = i;
  key_sets.push_back(all);
  return true;
}

/** Creates the table of a step of some rows. Arguments: rows of the table, elements of a row, rows of a step. */
bool create_rows(char **arguments, struct answer *) {
  const std::size_t table_rows = std::strtoull(arguments[0], nullptr, 10);
  const std::size_t of_step = std::strtoull(arguments[2], nullptr, 10);
  create(table_rows, std::strtoull(arguments[1], nullptr, 10), of_step);
  for (std::uint32_t seed = 0; seed < ROW_SETS; seed++) {
    std::int64_t *rows = choose_rows(seed, of_step, table_rows);
    keys chosen;
    chosen.CopyFrom(rows, rows + of_step);
    std::free(rows);
    key_sets.push_back(chosen);
  }
  return true;
}

/**
 * Makes steps for a time, at least one: a push of all gradients in one message, and when the server has
 * applied them, a pull of the same elements. Argument: duration in ms. Answer: steps, begin and end in ms.
 */
bool run(char **arguments, struct answer *answer) {
  const double duration_ms = std::strtod(arguments[0], nullptr);
  const double start_ms = machine_ms();
  std::size_t steps = 0;
  do {
    const keys &named = key_sets[steps % key_sets.size()];
    worker->Wait(worker->ZPush(named, gradients));
    worker->Wait(worker->ZPull(named, &values));
    steps++;
  } while (machine_ms() - start_ms < duration_ms);
  std::snprintf(answer->text, sizeof answer->text, "%zu %.6f %.6f", steps, start_ms, machine_ms());
  return true;
}

/** Ends all nodes. */
bool close_nodes(char **, struct answer *) {
  worker.reset();
  ps::Finalize(CUSTOMER);
  while (wait(nullptr) > 0) {
  }
  return true;
}

}  // namespace

int main() {
  static const struct command commands[] = {{"open", 0, open_nodes},
                                            {"create_dense", 2, create_dense},
                                            {"create_rows", 3, create_rows},
                                            {"run", 1, run},
                                            {"close", 0, close_nodes}};
  serve_agent(commands, sizeof commands / sizeof commands[0]);
  // Without the destructors of static objects: ps-lite's threads may still use them.
  _exit(0);
}
