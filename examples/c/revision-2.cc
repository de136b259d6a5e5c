// Learns the fuel consumption of cars through revision 2 of the Paddle client library, in C++.
// Broker and job: PSERVER_URL, PSERVER_JOB.
#include <paddle_pserver_client.h>

#include <array>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "cars.h"

namespace {

constexpr int kRounds = 300;
constexpr double kLearningRate = 0.05;

std::array<const char *, 2> names{{"weights", "bias"}};

/** The model, or a step of it, as the library takes it. */
struct Model {
  std::array<float, FEATURES> weights{};
  float bias = 0;

  std::array<paddle_parameter, 2> list() {
    return {{{const_cast<char *>(names[0]), PADDLE_ELEMENT_TYPE_FLOAT32, weights.data(),
              static_cast<int>(sizeof weights)},
             {const_cast<char *>(names[1]), PADDLE_ELEMENT_TYPE_FLOAT32, &bias,
              static_cast<int>(sizeof bias)}}};
  }
};

void check(int result) {
  if (result < 0) throw std::runtime_error(paddle_pserver_last_error());
}

/** A client that releases itself. */
class Trainer {
 public:
  Trainer() : client_(paddle_new_pserver_client(), paddle_pserver_client_release) {
    if (client_ == nullptr) throw std::runtime_error(paddle_pserver_last_error());
  }

  /** Makes these the first values unless another trainer has made its own. */
  void initialize(Model &first) {
    const int selected = paddle_begin_init_params(client_.get(), "{\"optimizer\": \"sgd\"}");
    check(selected);
    if (selected == 0) return;
    for (const paddle_parameter &parameter : first.list()) {
      check(paddle_init_param(client_.get(), parameter));
    }
    check(paddle_finish_init_params(client_.get()));
  }

  void get(Model &model) {
    auto list = model.list();
    check(paddle_get_params(client_.get(), names.data(), list.data(), list.size()));
  }

  void send(Model &step) {
    const auto list = step.list();
    check(paddle_send_grads(client_.get(), list.data(), list.size(), kLearningRate));
  }

 private:
  std::unique_ptr<paddle_pserver_client, void (*)(paddle_pserver_client *)> client_;
};

int train(const cars &data, part share) {
  Model model;
  Model step;
  Trainer trainer;
  trainer.initialize(model);
  for (int round = 0; round < kRounds; round++) {
    trainer.get(model);
    gradient(&data, share, model.weights.data(), model.bias, step.weights.data(), &step.bias);
    trainer.send(step);
  }
  trainer.get(model);
  return report(&data, model.weights.data(), model.bias);
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
