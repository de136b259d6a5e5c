/** PaddlePaddle's configuration messages. */
export const PADDLE_DESCRIPTOR = {
    nested: {
        paddle: {
            nested: {
                SGDConfig: {
                    edition: "proto2",
                    fields: {
                        momentum: { type: "double", id: 21, options: { default: 0 } },
                        decay: { type: "double", id: 23, options: { default: 0 } },
                        nesterov: { type: "bool", id: 24, options: { default: false } },
                    },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                AdadeltaConfig: {
                    edition: "proto2",
                    fields: {
                        rho: { type: "double", id: 33, options: { default: 0.9 } },
                        epsilon: { type: "double", id: 31, options: { default: 0.00001 } },
                        decay: { type: "double", id: 32, options: { default: 0 } },
                    },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                AdagradConfig: {
                    edition: "proto2",
                    fields: {
                        epsilon: { type: "double", id: 41, options: { default: 0.00001 } },
                        decay: { type: "double", id: 42, options: { default: 0 } },
                    },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                AdamConfig: {
                    edition: "proto2",
                    fields: {
                        beta_1: { type: "double", id: 41 },
                        beta_2: { type: "double", id: 42 },
                        epsilon: { type: "double", id: 43 },
                        decay: { type: "double", id: 44 },
                    },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                ConstLrConfig: {
                    edition: "proto2",
                    fields: { learning_rate: { type: "double", id: 1, options: { default: 1 } } },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                LinearLrConfig: {
                    edition: "proto2",
                    fields: {
                        learning_rate: { type: "double", id: 1, options: { default: 1 } },
                        lr_decay_a: { type: "double", id: 2 },
                        lr_decay_b: { type: "double", id: 3 },
                    },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                OptimizerConfig: {
                    edition: "proto2",
                    fields: {
                        optimizer: { type: "Optimizer", id: 1 },
                        sgd: { type: "SGDConfig", id: 3 },
                        adadelta: { type: "AdadeltaConfig", id: 4 },
                        adagrad: { type: "AdagradConfig", id: 5 },
                        adam: { type: "AdamConfig", id: 6 },
                        lr_policy: { type: "LrPolicy", id: 11 },
                        const_lr: { type: "ConstLrConfig", id: 12 },
                        linear_lr: { type: "LinearLrConfig", id: 13 },
                        clip_norm: { type: "double", id: 101 },
                        clip_value: { type: "double", id: 102 },
                    },
                    nested: {
                        Optimizer: { values: { SGD: 1, Adadelta: 2, Adagrad: 3, Adam: 4 } },
                        LrPolicy: { values: { Const: 0, Linear: 1 } },
                    },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                ParameterUpdaterHookConfig: {
                    edition: "proto2",
                    fields: { type: { rule: "required", type: "string", id: 1 } },
                    reserved: [[2, 2]],
                    options: { features: { utf8_validation: "VERIFY" } },
                },
                ParameterConfig: {
                    edition: "proto2",
                    fields: {
                        name: { rule: "required", type: "string", id: 1 },
                        size: { rule: "required", type: "uint64", id: 2 },
                        learning_rate: { type: "double", id: 3, options: { default: 1 } },
                        momentum: { type: "double", id: 4, options: { default: 0 } },
                        initial_mean: { type: "double", id: 5, options: { default: 0 } },
                        initial_std: { type: "double", id: 6, options: { default: 0.01 } },
                        decay_rate: { type: "double", id: 7, options: { default: 0 } },
                        decay_rate_l1: { type: "double", id: 8, options: { default: 0 } },
                        dims: { rule: "repeated", type: "uint64", id: 9 },
                        device: { type: "int32", id: 10, options: { default: -1 } },
                        initial_strategy: { type: "int32", id: 11, options: { default: 0 } },
                        initial_smart: { type: "bool", id: 12, options: { default: false } },
                        num_batches_regularization: { type: "int32", id: 13, options: { default: 1 } },
                        is_sparse: { type: "bool", id: 14, options: { default: false } },
                        format: { type: "string", id: 15, options: { default: "" } },
                        sparse_remote_update: { type: "bool", id: 16, options: { default: false } },
                        gradient_clipping_threshold: { type: "double", id: 17, options: { default: 0 } },
                        is_static: { type: "bool", id: 18, options: { default: false } },
                        para_id: { type: "uint64", id: 19 },
                        update_hooks: { rule: "repeated", type: "ParameterUpdaterHookConfig", id: 20 },
                        need_compact: { type: "bool", id: 21, options: { default: false } },
                        sparse_update: { type: "bool", id: 22, options: { default: false } },
                        is_shared: { type: "bool", id: 23, options: { default: false } },
                        parameter_block_size: { type: "uint64", id: 24, options: { default: 0 } },
                    },
                    options: { features: { utf8_validation: "VERIFY" } },
                },
            },
        },
    },
};
//# sourceMappingURL=descriptor.js.map