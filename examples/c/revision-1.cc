// Learns the fuel consumption of cars through revision 1 of the Paddle client library, in C++.
// Broker and job: PSERVER_URL, PSERVER_JOB.
#include <paddle_pserver_client.h>

#include <array>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "cars.h"

namespace {

constexpr int kRounds = 300;
// The server subtracts gradients as they are, so the trainer multiplies them by the rate.
constexpr float kLearningRate = 0.05F;

using Weights = std::array<float, FEATURES>;

void check(int result) {
  if (result < 0) throw std::runtime_error(paddle_pserver_last_error());
}

/** A client that releases itself. */
class Trainer {
 public:
  Trainer() : client_(paddle_new_pserver_client(), paddle_pserver_client_release) {
    if (client_ == nullptr) throw std::runtime_error(paddle_pserver_last_error());
  }

  template <typename Values>
  void declare(const char *name, const Values &values) {
    check(paddle_declare_param(client_.get(), name, PADDLE_ELEMENT_TYPE_FLOAT32,
                               sizeof values / sizeof(float)));
  }

  bool begin() {
    const int selected = paddle_begin_init_param(client_.get());
    check(selected);
    return selected == 1;
  }

  template <typename Values>
  void init(const char *name, const Values &values) {
    check(paddle_init_param(client_.get(), name, PADDLE_ELEMENT_TYPE_FLOAT32, &values));
  }

  void finish() { check(paddle_finish_init_param(client_.get())); }

  template <typename Values>
  void get(const char *name, Values &values) {
    void *to = &values;
    int bytes = sizeof values;
    check(paddle_get_param(client_.get(), name, &to, &bytes));
  }

  template <typename Values>
  void send(const char *name, const Values &gradient) {
    check(paddle_send_grad(client_.get(), name, PADDLE_ELEMENT_TYPE_FLOAT32, &gradient));
  }

 private:
  std::unique_ptr<paddle_pserver_client, void (*)(paddle_pserver_client *)> client_;
};

int train(const cars &data, part share) {
  Weights weights{};
  Weights weight_step{};
  float bias = 0;
  float bias_step = 0;
  Trainer trainer;
  trainer.declare("weights", weights);
  trainer.declare("bias", bias);
  if (trainer.begin()) {
    trainer.init("weights", weights);
    trainer.init("bias", bias);
    trainer.finish();
  }
  for (int round = 0; round < kRounds; round++) {
    trainer.get("weights", weights);
    trainer.get("bias", bias);
    gradient(&data, share, weights.data(), bias, weight_step.data(), &bias_step);
    for (float &step : weight_step) step *= kLearningRate;
    bias_step *= kLearningRate;
    trainer.send("weights", weight_step);
    trainer.send("bias", bias_step);
  }
  trainer.get("weights", weights);
  trainer.get("bias", bias);
  return report(&data, weights.data(), bias);
}

}  // namespace

int main(int argc, char **argv) {
  static cars data;
  part share;
  if (read_cars(argc, argv, &data, &share) != 0) return 2;
  try {
    return train(data, share);
  } catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
