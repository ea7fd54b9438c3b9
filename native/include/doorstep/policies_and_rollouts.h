/* Policies and rollouts: networks, training kernels, metrics, and engines that play requests. Rules: ../doorstep.h. */
#ifndef DOORSTEP_POLICIES_AND_ROLLOUTS_H
#define DOORSTEP_POLICIES_AND_ROLLOUTS_H

#include "rooms.h"

typedef uint64_t ds_layer;  /* a layer of policies */
typedef uint64_t ds_policy; /* a network that chooses actions */

/* ---- Training kernels -------------------------------------------------------------------------------------- */

/* Training functions on the tensors of many steps. Arrays are C-contiguous, are on the call's device and have the
   call's dtype (DS_DTYPE_FLOAT32 or DS_DTYPE_FLOAT64) unless declared otherwise; outputs overlap no other array. The
   same arrays give the same bits on every device.

   On the CPU a call returns when the work is done. On CUDA the work is one launch on `stream` (a CUstream), which may
   be recorded into a graph; call ds_training_prepare() for the device first. */

enum {
    DS_MAX_ACTION_COMPONENTS = 16,
};

/* num_steps steps of num_columns agents. All arrays are [num_steps, num_columns]. */
typedef struct ds_advantages {
    uint32_t struct_size;
    int32_t device_kind;         /* DS_DEVICE_CPU or DS_DEVICE_CUDA */
    int64_t device_index;        /* 0 for the CPU */
    uint64_t stream;             /* CUDA: a CUstream; 0 on the CPU */
    int64_t num_steps;
    int64_t num_columns;
    int32_t dtype;               /* ds_dtype */
    int32_t padding;
    const void* rewards;
    const void* values;          /* value estimates of the observations before the step */
    const void* next_values;     /* of those after the step; where an episode ended, of its final observation */
    const uint8_t* terminations; /* nonzero: the episode ended; the value after it is 0 */
    const uint8_t* truncations;  /* nonzero: the episode was cut off; next_values is the value after it */
    const void* log_ratios;      /* V-trace: log(target policy / behaviour policy) of the actions; else null */
    void* advantages;
    void* targets;               /* for the value function */
    double gamma;                /* what a reward is worth a step earlier */
    double gae_lambda;           /* also the lambda of V-trace */
    double rho_clip;             /* V-trace: ratios are clipped at these */
    double c_clip;
} ds_advantages;

/* Actions of num_components independent components, with logits [num_rows, sum of sizes]. */
typedef struct ds_multi_discrete {
    uint32_t struct_size;
    int32_t device_kind;         /* as above */
    int64_t device_index;
    uint64_t stream;
    int64_t num_rows;
    int32_t dtype;
    int32_t num_components;      /* 1 .. DS_MAX_ACTION_COMPONENTS */
    int32_t sizes[16];           /* number of choices of each, at least 1 */
    const void* logits;
    const void* uniforms;        /* sample: [num_rows, num_components], in [0, 1) */
    int32_t* actions;            /* [num_rows, num_components]: written by sample, read by the others */
    void* log_probabilities;     /* [num_rows]: sum over the components */
    void* entropies;             /* [num_rows]: likewise */
    const void* log_probability_gradients; /* backward: [num_rows] */
    const void* entropy_gradients;         /* backward: [num_rows] */
    void* logit_gradients;                 /* backward: shape of logits */
} ds_multi_discrete;

/* CUDA: loads the training kernels for a device. They stay loaded until as many calls of ds_training_release(). */
DS_API ds_status ds_training_prepare(int64_t device_index);
DS_API ds_status ds_training_release(int64_t device_index);

/* Generalised advantage estimation; targets are advantages + values. INVALID_ARGUMENT (also: not prepared), DEVICE. */
DS_API ds_status ds_generalized_advantages(const ds_advantages* call);
/* V-trace: advantages for the policy gradient, targets for the value function. */
DS_API ds_status ds_v_trace(const ds_advantages* call);

/* Samples actions; writes their log-probabilities and the entropies. */
DS_API ds_status ds_multi_discrete_sample(const ds_multi_discrete* call);
/* Log-probabilities and entropies of given actions. An action out of range is INVALID_ARGUMENT on the CPU; on CUDA the
   log-probability of its row is NaN. */
DS_API ds_status ds_multi_discrete_evaluate(const ds_multi_discrete* call);
/* Computes the gradients of the logits from those of the log-probabilities and entropies. */
DS_API ds_status ds_multi_discrete_backward(const ds_multi_discrete* call);

/* ---- Policies ---------------------------------------------------------------------------------------------- */

/* A policy is a network that reads flat observations (the tensor "observations") and chooses actions: layers one after
   another, the last of which give a logit per value of each component of DS_ACTION_TABLE, DS_NUM_LOGITS in all. It is
   evaluated where its weights are: on the CPU or on a CUDA device, in single precision unless it asks for another one.

   Weights are read where the caller keeps them, in every call: who changes them in place changes the policy. The caller
   lets no call run meanwhile.

   In DS_PRECISION_FLOAT32 a row's results have the same bits whatever the other rows of the call, its place among them,
   the thread, the processor and the device. Calls on one policy may run at the same time. On the CPU a call allocates
   memory only if more run at once than ever before.

   On CUDA a call begins one launch on a stream of the caller's, which may be captured, and returns. All arrays are on
   the policy's device and not checked, except for null pointers. Launches for one policy are executed in the order of
   the calls, on whichever streams; the stream of the latest call exists until the next call or the policy's end. A
   captured launch is ordered by the code that captures it.

   A layer lives while a handle or a policy refers to it; a policy lives while a handle or a call does. */

enum {
    DS_NUM_LOGITS = 19,         /* sum of the sizes in DS_ACTION_TABLE */
    DS_MAX_POLICY_LAYERS = 256,
    DS_MAX_LAYER_WIDTH = 65536, /* inputs or outputs of a layer */
};

/* How an agent's action is chosen by logits. */
typedef struct ds_sampling {
    float temperature; /* logits are divided by it; 0: the value with the largest logit of each component is chosen, the
                          first of equal ones; at least 0 */
    float top_p;       /* more than 0, at most 1: per component, only the fewest most likely values whose probabilities
                          reach this sum are drawn; not used where temperature is 0 */
} ds_sampling;

/* The same as a configuration. */
#define DS_SAMPLING_CONFIG_TABLE(X)                                                                                \
    X(NUMBER, temperature, 1, 0, DS_NO_LIMIT, ALL, "",                                                             \
      "Logits are divided by it. The smaller, the likelier the most likely values become; 0 is as greedy.", "")    \
    X(FLAG, greedy, 0, 0, 1, ALL, "", "Choose the value with the largest logit, the first of equal ones.",         \
      "pass 0 or 1")                                                                                               \
    X(POSITIVE, top_p, 1, 0, 1, ALL, "",                                                                           \
      "Draw only from the fewest most likely values whose probabilities reach this sum, per component; 1: all.",   \
      "")                                                                                                          \
    X(OPTIONAL, seed, -1, 0, DS_MAX_SEED, ALL, "",                                                                 \
      "Of the random numbers. Without one, a request uses its episode's seed, and a policy draws one.",            \
      "-1 for no seed")

typedef struct ds_sampling_config {
    uint32_t struct_size;
    DS_SAMPLING_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_sampling_config;

DS_API ds_status ds_sampling_config_default(ds_sampling_config* fields);
DS_API ds_status ds_sampling_config_create(const ds_sampling_config* fields, ds_config* config);
DS_API ds_status ds_sampling_config_get(ds_config config, ds_sampling_config* fields);

/* Kinds of layers, as in PyTorch: the modules of these names with the same formulas and layouts of weights. */
typedef enum ds_layer_kind {
    DS_LAYER_LINEAR = 0,
    DS_LAYER_LAYER_NORM = 1, /* over all inputs of a token */
    DS_LAYER_RMS_NORM = 2,   /* likewise, without biases */
    DS_LAYER_LSTM = 3,       /* one layer, one direction; gates i, f, g, o; its state is h, then c */
    DS_LAYER_GRU = 4,        /* likewise; gates r, z, n; its state is h */
    DS_LAYER_CONV = 5,       /* Conv2d, and Conv1d with a height of 1; no dilation, one group */
    DS_LAYER_MAX_POOL = 6,   /* of each channel */
    DS_LAYER_AVG_POOL = 7,   /* likewise; zeros beyond the edge count */
    DS_LAYER_ATTENTION = 8,  /* MultiheadAttention of a row's tokens to each other, without a mask */
    DS_LAYER_KEEP = 9,       /* its outputs are its inputs, which a later ADD or APPEND gets too: that of the last KEEP */
    DS_LAYER_TAKE = 10,      /* O of its inputs, from the one with the number `first` on */
    DS_LAYER_ADD = 11,       /* adds what was kept: I values */
    DS_LAYER_APPEND = 12,    /* its inputs, then what was kept: O - I values */
    DS_LAYER_FUNCTION = 13,  /* the caller's own, on the CPU */
    DS_LAYER_RELU = 14, /* this and all that follow: per element */
    DS_LAYER_RELU6 = 15,
    DS_LAYER_LEAKY_RELU = 16,
    DS_LAYER_ELU = 17,
    DS_LAYER_CELU = 18,
    DS_LAYER_SELU = 19,
    DS_LAYER_SILU = 20,
    DS_LAYER_MISH = 21,
    DS_LAYER_SIGMOID = 22,
    DS_LAYER_HARDSIGMOID = 23,
    DS_LAYER_HARDSWISH = 24,
    DS_LAYER_TANH = 25,
    DS_LAYER_SOFTSIGN = 26,
    DS_LAYER_SOFTPLUS = 27,
    DS_LAYER_GELU = 28,
    DS_LAYER_GELU_TANH = 29, /* with the approximation by tanh */
} ds_layer_kind;

/* Types of weights. Those of 16 bits are widened when they are read: all arithmetic is in single precision. */
typedef enum ds_weight_type {
    DS_WEIGHT_FLOAT32 = 0,
    DS_WEIGHT_BFLOAT16 = 1,
} ds_weight_type;

/* How the inputs of a layer are divided. Numbers that its kind does not need are 0. Outputs of CONV and pools are
   [channels, height, width] too, with (size + 2 pad - kernel) / stride + 1 for each of height and width. */
typedef struct ds_layer_shape {
    int32_t num_tokens;          /* LINEAR, norms, ATTENTION: equal parts of the inputs, to each of which the weights are
                                    applied; 0: one */
    int32_t num_attention_heads; /* ATTENTION: divides the inputs of a token */
    int32_t channels;            /* CONV, pools: the inputs are [channels, height, width] */
    int32_t height;
    int32_t width;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t pad_height;          /* on both sides, with zeros; of pools at most half of the kernel */
    int32_t pad_width;
    int32_t first;               /* TAKE */
} ds_layer_shape;

/* A layer of the caller's own: outputs [num_rows, O] of inputs [num_rows, I], C-contiguous. The outputs of a row follow
   from its inputs alone. Several threads call it at once, with 1 to 64 rows; it calls no function of this library, and
   does not throw. */
typedef void (*ds_layer_function)(void* context, int64_t num_rows, const float* inputs, float* outputs);

/* A layer. I inputs, O outputs, both of all tokens; i and o are those of a token, C channels, K the numbers of a kernel,
   C times its height and width. G is o for LINEAR, 4 O for LSTM, 3 O for GRU. Arrays are C-contiguous and aligned to
   their elements; null biases are zero, null weights of norms are one. Fields that a kind lacks are zero. */
typedef struct ds_layer_config {
    uint32_t struct_size;
    int32_t kind;                   /* ds_layer_kind */
    int64_t num_inputs;             /* 1 .. DS_MAX_LAYER_WIDTH; 0 for kinds that work per element */
    int64_t num_outputs;            /* likewise; also 0 for norms, KEEP and ADD, which have as many as inputs */
    int32_t weight_type;            /* ds_weight_type, of all arrays */
    float parameter;                /* norms: epsilon; LEAKY_RELU: slope below 0; ELU, CELU: alpha; SOFTPLUS: beta */
    const void* weights;            /* [G, i]; norms: [i]; CONV: [channels of the outputs, K]; ATTENTION: [3 i, i] */
    const void* biases;             /* [G]; LAYER_NORM: [i]; CONV: [channels of the outputs]; ATTENTION: [3 i] */
    const void* hidden_weights;     /* LSTM, GRU: [G, O]; ATTENTION: the projection of its outputs, [i, i] */
    const void* hidden_biases;      /* LSTM, GRU: [G]; ATTENTION: likewise, [i] */
    void* owner;                    /* passed to release_owner once no handle and no policy needs the arrays or the */
    ds_release_owner release_owner; /* function; with a null release_owner the caller keeps them valid */
    int64_t device_index;           /* of the arrays */
    int32_t device_kind;            /* ds_device_kind, likewise */
    int32_t padding;
    ds_layer_shape shape;
    ds_layer_function function;     /* FUNCTION */
    void* function_context;         /* FUNCTION: passed to it */
} ds_layer_config;

/* Creates a layer. INVALID_ARGUMENT; then the owner was not taken over. */
DS_API ds_status ds_layer_create(const ds_layer_config* config, ds_layer* layer);
DS_API ds_status ds_layer_release(ds_layer layer);

/* The layer as it was created, without its owner. */
DS_API ds_status ds_layer_get_config(ds_layer layer, ds_layer_config* config);

/* How a network multiplies values with weights. All other arithmetic, that of norms included, is in single precision. */
typedef enum ds_precision {
    DS_PRECISION_FLOAT32 = 0,  /* in single precision, with one rounding for each weight */
    DS_PRECISION_BFLOAT16 = 1, /* CUDA, compute capability 8.0 or newer: tensor cores multiply values and weights that
                                  are rounded to the nearest bfloat16, and add in single precision, in an order of their
                                  own: results are near those of DS_PRECISION_FLOAT32 */
} ds_precision;

typedef struct ds_policy_info {
    uint32_t struct_size;
    int32_t num_layers;
    int32_t num_heads;
    int32_t vector_width;      /* rows that one instruction processes on this processor */
    int64_t num_inputs;        /* floats of an observation */
    int64_t state_size;        /* floats of a recurrent state; 0: the policy has none */
    int64_t nonfinite_rows;    /* rows so far for which no action could be chosen, see ds_policy_act(); CUDA: in calls
                                  that have ended */
    int64_t device_index;
    int32_t device_kind;       /* ds_device_kind */
    int32_t has_value;         /* its last head is the value */
    int32_t precision;         /* ds_precision */
    int32_t padding;
} ds_policy_info;

/* Composes a policy of `count` layers: each takes the outputs of the one before. The last num_heads of them, LINEAR,
   take the same inputs instead; their outputs side by side are the logits. One more head with one output, the last one,
   is the value of the observations. 0 heads: the logits are the outputs of the last layer. INVALID_ARGUMENT if the
   numbers of inputs and outputs do not fit, there are not DS_NUM_LOGITS, the layers are on several devices, or these lack
   the precision, a ds_precision. CUDA: loads the kernel; DEVICE, OUT_OF_MEMORY. */
DS_API ds_status ds_policy_create(const ds_layer* layers, uint64_t count, uint64_t num_heads, int32_t precision,
                                  ds_policy* policy);
DS_API ds_status ds_policy_release(ds_policy policy);

DS_API ds_status ds_policy_get_info(ds_policy policy, ds_policy_info* info);

/* A new handle to one of its layers, 0 to num_layers - 1; release it with ds_layer_release. */
DS_API ds_status ds_policy_get_layer(ds_policy policy, uint64_t index, ds_layer* layer);

/* A new policy of the same precision with copies of all weights as they are now. CUDA: after the work begun on `stream`,
   a CUstream; waits for the copies. On the CPU the stream is ignored. */
DS_API ds_status ds_policy_freeze(ds_policy policy, uint64_t stream, ds_policy* frozen);

/* What an agent's random numbers depend on, and nothing else: different for every action of a run. */
typedef struct ds_sampling_key {
    uint32_t key[2];
    uint32_t step;
    uint32_t agent; /* below 2**30 */
} ds_sampling_key;

/* Rows of a policy's inputs and outputs. Row i of the call is row rows[i] of all arrays but logits. */
typedef struct ds_policy_call {
    uint32_t struct_size;
    uint32_t step;                  /* added to the step of every key, modulo 2**32 */
    int64_t num_rows;
    const int32_t* rows;            /* num_rows distinct indices, at least 0; null: 0, 1, ... */
    const float* observations;      /* rows of num_inputs floats */
    int64_t observation_stride;     /* floats from a row to the next, at least num_inputs */
    float* states;                  /* rows of state_size floats, updated in place; zero at the start of an episode;
                                       null if the policy has none */
    int64_t state_stride;           /* floats, at least state_size */
    const ds_sampling* sampling;    /* a row each; null in ds_policy_forward */
    const ds_sampling_key* keys;    /* a row each; null in ds_policy_forward */
    int32_t* actions;               /* rows of DS_ACTION_COMPONENT_COUNT; null in ds_policy_forward */
    float* logits;                  /* [num_rows, DS_NUM_LOGITS], by i; ds_policy_act: or null */
    uint8_t* nonfinite;             /* a row each: 1 if no action could be chosen, else 0; or null */
    const uint32_t* step_counter;   /* one number, which is added too when the call is executed; or null */
    uint64_t stream;                /* CUDA: the CUstream; 0: the legacy default stream. CPU: 0 */
    float* log_probs;               /* a row each: the logarithm of the probability with which the action was drawn, by
                                       temperature and top_p too: 0 of a greedy choice, NaN where none could be made; or
                                       null, as in ds_policy_forward */
    float* values;                  /* a row each: the value, NaN of policies that have none; or null */
} ds_policy_call;

/* Computes logits, values and the next states; on the CPU on the calling thread. */
DS_API ds_status ds_policy_forward(ds_policy policy, const ds_policy_call* call);

/* The same, and chooses actions. A logit of minus infinity excludes its value. Where a logit is NaN or infinity, or all
   values of a component are excluded, the action is the neutral one, and the row is counted in nonfinite_rows. */
DS_API ds_status ds_policy_act(ds_policy policy, const ds_policy_call* call);

/* ---- Metrics ----------------------------------------------------------------------------------------------- */

/* A store holds what engines measure, in series. Each is recorded by one writer at a time: the queue of an engine, or
   one of its replicas. A later writer of the same numbers goes on with a series that nobody writes; those of several
   writers add up. Recording takes no lock; readers see values soon after. Series that a store has stay there. */

typedef uint64_t ds_metrics; /* a store of series */

enum {
    DS_MAX_SERIES = 16384,              /* of a store */
    DS_MAX_POLICY_SERIES = 1024,        /* numbers of policies in POLICY_SECONDS */
    DS_MAX_TRACE_EVENTS = 16777216,     /* of each queue and replica; 2**24 */
    DS_TIME_SERIES_POINTS = 512,        /* most points of a time series */
    DS_SKETCH_RELATIVE_ERROR_PERCENT = 1,
    DS_SKETCH_WINDOW_SECONDS = 60,      /* recent values can be told apart for so long */
    DS_SKETCH_SPAN_LOG2 = 33,           /* of the nanoseconds of a span of recent values */
    DS_SKETCH_SPANS = 8,                /* the current one and those before it */
    DS_SKETCH_BINS_PER_OCTAVE = 38,
    DS_SKETCH_LOWEST_EXPONENT = -40,    /* smaller values count as 0 */
    DS_SKETCH_OCTAVES = 80,             /* larger values count as the largest one */
};

typedef enum ds_series_kind {
    DS_SERIES_COUNTER = 0,     /* a number that grows, and stays at 2**63 - 1; no rows */
    DS_SERIES_SKETCH = 1,      /* values, for quantiles within a relative error; rows: ds_sketch_count */
    DS_SERIES_TIME_SERIES = 2, /* values over time; rows: ds_series_point */
    DS_SERIES_TRACE = 3,       /* the latest events; rows: ds_trace_event */
} ds_series_kind;

/* What is measured: first counters, from QUEUE_WAIT_SECONDS on sketches, then time series. */
typedef enum ds_metric {
    DS_METRIC_REQUESTS_SUBMITTED = 0, /* a request of several episodes is one */
    DS_METRIC_REQUESTS_ANSWERED = 1,  /* results, n of a request with n episodes */
    DS_METRIC_EPISODES_BEGUN = 2,
    DS_METRIC_STEPS = 3,
    DS_METRIC_EPISODE_STEPS = 4,
    DS_METRIC_WORLD_STEPS = 5,
    DS_METRIC_NONFINITE_ACTIONS = 6,
    DS_METRIC_DROPPED_SERIES = 7,
    DS_METRIC_QUEUE_WAIT_SECONDS = 8,
    DS_METRIC_FIRST_STEP_SECONDS = 9,
    DS_METRIC_LATENCY_SECONDS = 10,
    DS_METRIC_BATCH_FILL = 11,
    DS_METRIC_BEGIN_SECONDS = 12,
    DS_METRIC_POLICY_SECONDS = 13,
    DS_METRIC_STEP_SECONDS = 14,
    DS_METRIC_ACTIVE_WORLDS = 15,
    DS_METRIC_WAITING_REQUESTS = 16,
    DS_METRIC_TRACE = 17,
} ds_metric;

/* A series, and the totals of its values. */
typedef struct ds_series_info {
    uint32_t struct_size;
    int32_t metric;        /* ds_metric */
    int32_t kind;          /* ds_series_kind */
    int32_t scheduler;     /* ds_scheduler of the engine */
    int32_t replica;       /* number of the replica; of a queue: -1 */
    int32_t detail;        /* REQUESTS_ANSWERED, LATENCY_SECONDS: ds_episode_reason; POLICY_SECONDS: number of the policy's
                              series, see ds_engine_set_policy(); else 0 */
    int32_t variant;       /* REQUESTS_ANSWERED of FAILED: DS_CAUSE_MEMORY, SIMULATION or LOGITS, or 1 for all others;
                              POLICY_SECONDS: ds_policy_kind; else 0 */
    int32_t padding;
    uint64_t most_rows;    /* it has at any time */
    int64_t count;         /* of values; of a counter: its number, and it has nothing below */
    double sum;
    double minimum;        /* 0 without values, as below */
    double maximum;
    double last;           /* the latest value */
    int64_t last_ns;       /* when that was, on ds_monotonic_ns() */
} ds_series_info;

/* How many values of a sketch are in a bin. Bin 0 is of values that count as 0. Bin b has those from edge(b - 1) to
   edge(b), where edge(38 e + i) = 2**(e - 40) (3 - sqrt(4 - 3 i / 38)); every value of it is within 1% of the harmonic
   mean of both. Rows of the same span and bin add up. */
typedef struct ds_sketch_count {
    int64_t number;
    int32_t span;          /* those of 2**33 ns from span * 2**33 on, on ds_monotonic_ns(); -1: all there ever were */
    int32_t bin;
} ds_sketch_count;

/* The values of one of the equal spans of a time series, which become twice as long when there are too many. They begin
   at multiples of their length, which is a power of two: those of several series add up at the coarser one. */
typedef struct ds_series_point {
    int64_t start_ns;      /* on ds_monotonic_ns() */
    int64_t length_ns;
    int64_t count;         /* of values, at least 1 */
    double sum;
    double minimum;
    double maximum;
} ds_series_point;

/* What an event of a trace tells. The first ones take time. */
typedef enum ds_trace_kind {
    DS_TRACE_SUBMIT = 0,  /* count: requests that were submitted */
    DS_TRACE_ANSWER = 1,  /* count: episodes that were answered without play */
    DS_TRACE_TAKE = 2,    /* count: episodes that a replica took */
    DS_TRACE_BEGIN = 3,   /* count: episodes that began */
    DS_TRACE_ACT = 4,     /* count: rows; detail: index of the policy */
    DS_TRACE_STEP = 5,    /* count: worlds that played */
    DS_TRACE_END = 6,     /* count: episodes that ended */
    DS_TRACE_WAIT = 7,    /* for requests */
    DS_TRACE_REQUEST_SUBMITTED = 8, /* of a request with DS_RECORD_TRACE, at a point of time, as below */
    DS_TRACE_REQUEST_BEGUN = 9,
    DS_TRACE_REQUEST_ENDED = 10,    /* detail: ds_episode_reason */
} ds_trace_kind;

typedef struct ds_trace_event {
    int64_t start_ns;      /* on ds_monotonic_ns() */
    int64_t duration_ns;
    uint64_t request;      /* id, or 0 */
    int64_t count;
    int32_t kind;          /* ds_trace_kind */
    int32_t detail;
    int32_t track;         /* of the queue or replica: the number of its series in the store */
    int32_t replica;       /* number of the replica; of a queue: -1 */
} ds_trace_event;

/* What an engine measures. */
#define DS_METRICS_CONFIG_TABLE(X)                                                                                 \
    X(FLAG, enabled, 1, 0, 1, ALL, "", "Whether it measures at all.", "pass 0 or 1")                               \
    X(INTEGER, trace, 0, 0, DS_MAX_TRACE_EVENTS, ALL, "events",                                                    \
      "Events that the queue and each replica keep for a trace, the latest ones; one takes 48 bytes.",             \
      "0 is no trace")

typedef struct ds_metrics_config {
    uint32_t struct_size;
    DS_METRICS_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_metrics_config;

DS_API ds_status ds_metrics_config_default(ds_metrics_config* fields);
DS_API ds_status ds_metrics_config_create(const ds_metrics_config* fields, ds_config* config);
DS_API ds_status ds_metrics_config_get(ds_config config, ds_metrics_config* fields);

/* trace_capacity: events that each queue and each replica keeps, the latest ones, 0 .. DS_MAX_TRACE_EVENTS; 0: none. */
DS_API ds_status ds_metrics_create(int64_t trace_capacity, ds_metrics* metrics);
/* Releases the handle. The store lives while an engine uses it. */
DS_API ds_status ds_metrics_release(ds_metrics metrics);
DS_API ds_status ds_metrics_num_series(ds_metrics metrics, uint64_t* count);
/* Series `index` of num_series, in the order of their creation. */
DS_API ds_status ds_metrics_get_series(ds_metrics metrics, uint64_t index, ds_series_info* info);
/* The rows of a series. rows: room for `most` of the struct of its kind, at least its most_rows. *count: how many there
   are. Points and events are in the order of time. */
DS_API ds_status ds_metrics_get_rows(ds_metrics metrics, uint64_t index, uint64_t most, void* rows, uint64_t* count);

/* ---- Rollouts ---------------------------------------------------------------------------------------------- */

/* Episodes as requests. Callers submit requests to an engine, from any thread. Its replicas, each a simulator with a
   thread of its own, play them, each in a world, and callers take the results. What an episode's result is depends on
   its request alone: not on its replica, world, or the order of arrival. */

typedef uint64_t ds_shared_level;  /* a level that requests refer to */
typedef uint64_t ds_engine;        /* replicas, the requests that they play, and the results */
typedef uint64_t ds_outputs;       /* a queue of results and streamed steps, of the requests that were submitted for it */

enum {
    DS_MAX_POLICIES = 1024,           /* of an engine */
    DS_MAX_REPLICAS = 256,
    DS_MAX_QUEUE_CAPACITY = 16777216, /* 2**24 */
    DS_MAX_RESTARTS = 1000000,        /* of a replica */
};

/* How a replica takes requests. FIXED_CHUNK: in order of arrival, at most max_chunk per step. DYNAMIC_CHUNK: in order of
   arrival, as many per step as keep the time to begin episodes below a fraction of a step's. PRIORITY: the highest
   priority first. EARLIEST_DEADLINE: those without one last. LEAST_REMAINING_STEPS: the smallest max_steps first, those
   without a limit last. FAIR_SHARE: policies of agent 0 get equal numbers of steps, in order of arrival for each: start-time
   fair queuing (Goyal, Vin, Cheng 1996), where a request without max_steps counts as one of the simulator's
   episode_length. CALLER: the smallest key of the request first. */
typedef enum ds_scheduler {
    DS_SCHEDULER_FIXED_CHUNK = 0,
    DS_SCHEDULER_DYNAMIC_CHUNK = 1,
    DS_SCHEDULER_PRIORITY = 2,
    DS_SCHEDULER_EARLIEST_DEADLINE = 3,
    DS_SCHEDULER_LEAST_REMAINING_STEPS = 4,
    DS_SCHEDULER_FAIR_SHARE = 5,
    DS_SCHEDULER_CALLER = 6,
} ds_scheduler;

/* Why an episode ended. */
typedef enum ds_episode_reason {
    DS_EPISODE_GOAL = 0,      /* the level's goal was reached */
    DS_EPISODE_TIME = 1,      /* the level's or the simulator's length, or max_steps */
    DS_EPISODE_CANCELLED = 2,
    DS_EPISODE_EXPIRED = 3,   /* its deadline passed */
    DS_EPISODE_FAILED = 4,    /* see ds_failure_cause */
} ds_episode_reason;

/* Why an episode FAILED. Positive numbers are those of callers, of ds_engine_return_rows() or ds_engine_set_policy(). */
typedef enum ds_failure_cause {
    DS_CAUSE_NONE = 0,
    DS_CAUSE_MEMORY = -1,     /* no memory was left for what its request records, or for its policy */
    DS_CAUSE_SIMULATION = -2, /* in strict mode: a step counted trouble */
    DS_CAUSE_CLOSED = -3,     /* the engine was closed before the result was known */
    DS_CAUSE_REPLICA = -4,    /* the last replica has failed, see ds_engine_get_replica() */
    DS_CAUSE_DEVICE = -5,     /* its policy is on a CUDA device where its replica is not */
    DS_CAUSE_LOGITS = -6,     /* a native policy could choose no action in failed_step for failed_agent, see ds_policy_act();
                                 the episode made this step with the neutral one */
} ds_failure_cause;

/* What a request asks for beside its result. Bits. */
typedef enum ds_episode_record {
    DS_RECORD_ACTIONS = 1,      /* the result has the actions of all steps */
    DS_RECORD_OBSERVATIONS = 2, /* likewise, observations before each step, and rewards */
    DS_RECORD_STREAM = 4,       /* an output after every step */
    DS_RECORD_TRACE = 8,        /* its way through the engine is shown in the trace, if there is one */
    DS_RECORD_LOG_PROBS = 16,   /* as ACTIONS, and logarithms of the probabilities with which they were chosen, and the
                                   versions of the policies */
    DS_RECORD_VALUES = 32,      /* as ACTIONS, and what native policies with a value head expected */
    DS_RECORD_STATES = 64,      /* as ACTIONS, and recurrent states of native policies, before each step and at the end */
} ds_episode_record;

/* An episode to be played. Zeroed, it is seed 0 on the simulator's own level with policy 0 for all agents, which chooses
   the most likely actions. */
typedef struct ds_episode_request {
    uint64_t tag;            /* the caller's; comes back with the outputs */
    int64_t seed;            /* of the level, 0 .. 2**32 - 1 */
    int64_t sampling_seed;   /* of the actions, 0 .. 2**32 - 1 */
    ds_shared_level level;   /* 0: as the simulator draws it */
    ds_saved_state state;    /* 0: the episode begins with its level; else it goes on from there, without level. Then
                                max_steps are those from there on, of which observations show nothing */
    int64_t max_steps;       /* 0: no limit beyond the level's */
    int64_t priority;        /* for the scheduler PRIORITY; larger is earlier */
    int64_t deadline_ns;     /* on ds_monotonic_ns(); 0: none */
    double key;              /* for the scheduler CALLER; smaller is earlier, and NaN is refused */
    ds_sampling sampling;    /* of native policies */
    int32_t record;          /* bits of ds_episode_record */
    int32_t policies[8];     /* DS_MAX_AGENTS; index of each agent's policy */
    int32_t replica;         /* for the controller CALLER: the number of the one that plays it; -1: any */
    int32_t n;               /* episodes, at most DS_MAX_QUEUE_CAPACITY, each with random numbers for its policies and a
                                result of its own; 0 is 1 */
} ds_episode_request;

typedef enum ds_output_kind {
    DS_OUTPUT_RESULT = 0, /* the last output of a request */
    DS_OUTPUT_STEP = 1,   /* one step, of requests with DS_RECORD_STREAM */
} ds_output_kind;

/* An output of a request. */
typedef struct ds_episode_output {
    uint64_t id;
    uint64_t tag;
    uint64_t state_hash;  /* of the world at the end, as ds_simulator_world_hashes(); 0 if no step was made */
    ds_memory data;       /* what the request asked to record, see below; the caller releases it. 0: nothing */
    const void* data_start;
    uint64_t data_bytes;
    int64_t submitted_ns; /* on ds_monotonic_ns() */
    int64_t started_ns;   /* 0 if it never started */
    int64_t ended_ns;
    int64_t cause;        /* ds_failure_cause */
    int32_t failed_step;  /* of DS_CAUSE_LOGITS, from 0; else 0 */
    int32_t failed_agent; /* likewise */
    int32_t kind;         /* ds_output_kind */
    int32_t reason;       /* ds_episode_reason; of a step: -1 */
    int32_t length;       /* steps so far */
    int32_t num_agents;
    int32_t replica;      /* number of the replica, or -1 */
    int32_t world;        /* its slot, or -1 */
    int32_t continuation; /* which of the request's n episodes it is, from 0 */
    int32_t capacity;     /* steps that `data` has room for: C */
    float returns[8];     /* sum of each agent's rewards in the episode, with those before a saved state */
    float max_y[8];       /* largest y of each agent, metres */
    int32_t record;       /* of the request */
    int32_t state_size;   /* S: the most floats of a recurrent state that a policy of the episode had at its beginning */
} ds_episode_output;

/* data has room for C steps, of which those of the episode are the first. It has, in this order:
     int32 actions [C, A, 4];
     with DS_RECORD_LOG_PROBS float32 log_probs [C, A], as in ds_policy_call: also of random and idle actions, NaN of a
       caller's; then int32 versions [C, A] of the policies that chose, see ds_engine_set_policy();
     with DS_RECORD_VALUES float32 values [C, A], as in ds_policy_call, NaN of policies that are not native;
     with DS_RECORD_STATES float32 states [C + 1, A, S] from before each action and after the last; shorter ones end with
       zeros;
     with DS_RECORD_OBSERVATIONS float32 observations [C + 1, A, F] from before each step and after the last, then
       float32 rewards [C, A].
   data of a step, of which `length` is the number, is that of its episode: what belongs to the step is at place length - 1.
   Later steps are written there while it is read; what has been output is not written again. */

#define DS_SCHEDULER_CONFIG_TABLE(X)                                                                               \
    X(TYPE, type, DS_SCHEDULER_DYNAMIC_CHUNK, DS_SCHEDULER_FIXED_CHUNK, DS_SCHEDULER_CALLER, ALL, "",              \
      "Which requests are played first.", "pass a ds_scheduler")                                                   \
    X(OPTIONAL, max_chunk, 0, 1, DS_MAX_WORLDS, ALL, "episodes",                                                   \
      "Most episodes that a replica begins between two steps; none: as many as it has free worlds.",               \
      "0 is no limit")                                                                                             \
    X(POSITIVE, begin_fraction, 1, 0, 1, DYNAMIC_CHUNK, "steps",                                                   \
      "Part of a step's time that the episodes begun between two steps may take.", "")

typedef struct ds_scheduler_config {
    uint32_t struct_size;
    DS_SCHEDULER_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_scheduler_config;

DS_API ds_status ds_scheduler_config_default(ds_scheduler_config* fields);
DS_API ds_status ds_scheduler_config_create(const ds_scheduler_config* fields, ds_config* config);
DS_API ds_status ds_scheduler_config_get(ds_config config, ds_scheduler_config* fields);

/* Which replica plays a request. PULL: the one that takes it first. ROUND_ROBIN: the one whose turn it was when the request
   was submitted. CALLER: the one that the request names. Requests of a replica that has ended are played by any. */
typedef enum ds_controller {
    DS_CONTROLLER_PULL = 0,
    DS_CONTROLLER_ROUND_ROBIN = 1,
    DS_CONTROLLER_CALLER = 2,
} ds_controller;

#define DS_CONTROLLER_CONFIG_TABLE(X)                                                                              \
    X(TYPE, type, DS_CONTROLLER_PULL, DS_CONTROLLER_PULL, DS_CONTROLLER_CALLER, ALL, "",                           \
      "Which replica plays a request.", "pass a ds_controller")

typedef struct ds_controller_config {
    uint32_t struct_size;
    DS_CONTROLLER_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_controller_config;

DS_API ds_status ds_controller_config_default(ds_controller_config* fields);
DS_API ds_status ds_controller_config_create(const ds_controller_config* fields, ds_config* config);
DS_API ds_status ds_controller_config_get(ds_config config, ds_controller_config* fields);

/* Configuration of an engine. Of the simulator auto_reset is not used, nor are seed and world_offset; without
   observations it has the default parts. */
#define DS_ROLLOUT_CONFIG_TABLE(X)                                                                                 \
    X(DEVICES, devices, 0, 0, DS_MAX_REPLICAS, ALL, "",                                                            \
      "One replica is made on each; none: one, on the simulator's device.", "pass at most 256 devices")            \
    X(PART, simulator, 0, DS_CONFIG_SIMULATOR, DS_CONFIG_SIMULATOR, ALL, "",                                       \
      "Of every replica. Requests with levels need a positive max_levels.", "")                                    \
    X(PART, scheduler, 0, DS_CONFIG_SCHEDULER, DS_CONFIG_SCHEDULER, ALL, "", "How replicas take requests.", "")    \
    X(PART, controller, 0, DS_CONFIG_CONTROLLER, DS_CONFIG_CONTROLLER, ALL, "",                                    \
      "Which replica plays a request.", "")                                                                        \
    X(PART, metrics, 0, DS_CONFIG_METRICS, DS_CONFIG_METRICS, ALL, "", "What the engine measures.", "")            \
    X(INTEGER, queue_capacity, 1048576, 1, DS_MAX_QUEUE_CAPACITY, ALL, "requests",                                 \
      "Requests that wait at most.", "")                                                                           \
    X(INTEGER, output_capacity, 1048576, 1, DS_MAX_QUEUE_CAPACITY, ALL, "outputs",                                 \
      "Replicas begin no episode of submit() while so many outputs wait to be read.", "")                          \
    X(INTEGER, output_bytes, 268435456, 1, 1099511627776, ALL, "bytes",                                            \
      "Likewise, while what these outputs record takes so much memory.", "")                                       \
    X(INTEGER, max_policies, 64, 1, DS_MAX_POLICIES, ALL, "policies",                                              \
      "Different policies that unanswered requests may have.", "")                                                 \
    X(INTEGER, max_restarts, 3, 0, DS_MAX_RESTARTS, ALL, "restarts",                                               \
      "Times that a replica is made again after it has failed.", "")

typedef struct ds_rollout_config {
    uint32_t struct_size;
    DS_ROLLOUT_CONFIG_TABLE(DS_CONFIG_FIELD)
} ds_rollout_config;

DS_API ds_status ds_rollout_config_default(ds_rollout_config* fields);
DS_API ds_status ds_rollout_config_create(const ds_rollout_config* fields, ds_config* config);
DS_API ds_status ds_rollout_config_get(ds_config config, ds_rollout_config* fields);

/* Nanoseconds of the clock of deadlines and times. */
DS_API int64_t ds_monotonic_ns(void);

/* Copies a level, which must suit num_agents agents. */
DS_API ds_status ds_shared_level_create(const ds_level* level, int64_t num_agents, ds_shared_level* shared);
/* Requests that were submitted keep the level. */
DS_API ds_status ds_shared_level_release(ds_shared_level shared);

/* How the actions of a policy of requests are chosen. */
typedef enum ds_policy_kind {
    DS_POLICY_CALLER = 0,  /* by the caller, see ds_engine_take_rows() */
    DS_POLICY_RANDOM = 1,  /* all legal actions are equally likely */
    DS_POLICY_IDLE = 2,
    DS_POLICY_NATIVE = 3,  /* by a ds_policy */
    DS_POLICY_FAILING = 4, /* not at all: its episodes end before their next step, as FAILED */
} ds_policy_kind;

/* Rows of agents that await actions of a policy of the caller's. The arrays are those of `data`. */
typedef struct ds_rows {
    uint32_t struct_size;
    int32_t replica;          /* number of the replica that asks */
    int32_t policy;           /* whose actions are needed */
    int32_t padding;
    uint64_t id;              /* for ds_engine_return_rows() */
    uint64_t data;            /* a ds_memory, which the caller releases */
    int64_t num_rows;         /* R */
    int64_t num_inputs;       /* F */
    int64_t num_replica_rows; /* of all worlds of the replica */
    const int32_t* rows;      /* [R]: world * num_agents + agent, ascending */
    const int64_t* steps;     /* [R]: steps that the row's episode has made */
    const uint32_t* keys;     /* [R, 2]: random key of the row's episode, agent and step */
    const uint64_t* tags;     /* [R]: of the row's request */
    const float* rewards;     /* [R]: of the row's step before this; nothing if its steps are 0 */
    float* observations;      /* [R, F] */
} ds_rows;

/* Counts of an engine. Requests are counted since its creation. */
typedef struct ds_engine_info {
    uint32_t struct_size;
    int32_t num_replicas;
    int32_t num_playing;      /* replicas that have not ended */
    int64_t submitted;        /* requests */
    int64_t waiting;          /* requests with an episode that no replica has taken */
    int64_t unanswered;       /* episodes without a result */
    int64_t restarts;         /* of all replicas */
} ds_engine_info;

/* What a replica has done so far. */
typedef struct ds_replica_info {
    uint32_t struct_size;
    int32_t has_ended;
    int64_t num_worlds;
    int64_t steps;
    int64_t world_steps;   /* steps of worlds that played an episode: at most steps * num_worlds */
    int64_t episodes;      /* begun; again after an interruption */
    int64_t restarts;      /* after failures; the numbers above are since the last one */
} ds_replica_info;

/* As ds_engine_submit() does: INVALID_ARGUMENT if an engine of this configuration refuses one of the requests. */
DS_API ds_status ds_episode_requests_check(ds_config config, const ds_episode_request* requests, uint64_t count);

/* Creates the replicas and starts their threads. One that fails is made again, as often as max_restarts allows; its episodes
   begin again. config: of an engine. rewards: as of ds_simulator_set_rewards(), for all episodes; null: those of the
   levels. metrics: a store to record in, which other engines may have too; 0: one of its own, as the configuration says.
   In a forked child an engine of its parent is CLOSED. */
DS_API ds_status ds_engine_create(ds_config config, const ds_level_rewards* rewards, ds_metrics metrics,
                                  ds_engine* engine);
/* A new handle to its configuration. */
DS_API ds_status ds_engine_get_config(ds_engine engine, ds_config* config);
/* A new handle to its store; 0 if it measures nothing. */
DS_API ds_status ds_engine_get_metrics(ds_engine engine, ds_metrics* metrics);
DS_API ds_status ds_engine_get_info(ds_engine engine, ds_engine_info* info);
/* What a replica has done; `info` is filled in, too, if it has failed: then its latest failure is this call's, also where
   it has been restarted and plays on. */
DS_API ds_status ds_engine_get_replica(ds_engine engine, int64_t number, ds_replica_info* info);

/* Policy `index` of the requests, from the replicas' next passes on. All are DS_POLICY_CALLER at first. policy: of NATIVE
   the ds_policy, else 0. cause: of FAILING a positive number, else 0. version: a number of the caller's, recorded with the
   actions of the policy: to tell which weights chose them. series: under which metrics record the policy's times. Recurrent
   states of episodes that are played go on where policies have states of one size. Does not wait. */
DS_API ds_status ds_engine_set_policy(ds_engine engine, int64_t index, int32_t kind, ds_policy policy, int64_t cause,
                                      int32_t version, int32_t series);
/* Requests of policy `index` that begin from now on have policy `by` instead, also those that were submitted before;
   episodes that are being played go on as they are. by: `index` itself: no other one, as at first. */
DS_API ds_status ds_engine_replace_policy(ds_engine engine, int64_t index, int64_t by);

/* Opens a queue of outputs. limited: whether output_capacity and output_bytes hold for what waits there to be read: while
   it is full, replicas begin no episode for it, and play those of other queues. */
DS_API ds_status ds_engine_open_outputs(ds_engine engine, int32_t limited, ds_outputs* outputs);
/* Submits requests in order, as far as there is room: waits for it at most timeout_ns (negative: without limit). outputs: a
   queue of the engine, which gets their outputs. *accepted: how many; ids: [count], those of the accepted ones. PENDING if
   not all were accepted. CLOSED if the engine is closed or its replicas have failed. INVALID_STATE if it would wait for
   ever: a thread that has rows of ds_engine_take_rows() waits for its own engine, or outputs leave no room, none was read
   in 5 s, and no other thread has ever read any. INVALID_ARGUMENT, with none accepted, if one is refused, or if two of
   requests, ids and accepted overlap: then nothing is written. */
DS_API ds_status ds_engine_submit(ds_engine engine, ds_outputs outputs, const ds_episode_request* requests, uint64_t count,
                                  int64_t timeout_ns, uint64_t* ids, uint64_t* accepted);
/* Cancels a request, waiting or running: the results of its episodes follow soon, CANCELLED unless they are ending already.
   *found: 0 if all have ended, or it never existed. INVALID_ARGUMENT if another engine gave the id: its upper 12 bits are
   the number of the engine, which differs in 4,095 successive ones. */
DS_API ds_status ds_engine_cancel(ds_engine engine, uint64_t request_id, int32_t* found);
/* The tags of the requests with a result that has not been received, in no order. *count: how many; up to most of them
   are written. */
DS_API ds_status ds_engine_get_tags(ds_engine engine, uint64_t most, uint64_t* tags, uint64_t* count);

/* What a caller has taken from a queue. It is the caller's memory, zero at first, and used by one thread at a time. */
typedef struct ds_delivery {
    uint64_t number;   /* of the delivery; 0: none */
    uint64_t received; /* of its outputs, the first ones: written by the caller, when they are where they are needed */
} ds_delivery;

/* Takes up to most outputs, in order, once there are `least` of them, or all that are to come, or no room for others; or,
   after timeout_ns (negative: without limit), those that have come. First it settles the caller's delivery, as
   ds_outputs_settle(). PENDING if no output came in this time. OK with *taken = 0 if none is to come:
   all requests have their results, and these were taken. CLOSED if the engine has ended as well. INVALID_STATE as
   ds_engine_submit(), in a thread that has rows. The caller releases `data` of the outputs, also of those that it does not
   receive.

   A delivery is the caller's until it is settled: no other call gets its outputs. */
DS_API ds_status ds_outputs_take(ds_outputs outputs, uint64_t least, uint64_t most, int64_t timeout_ns,
                                 ds_delivery* delivery, ds_episode_output* taken_outputs, uint64_t* taken);
/* What was received of a delivery ends; the rest can be taken again, before all others. The delivery is zero then.
   *outstanding: episodes whose result nobody has taken. */
DS_API ds_status ds_outputs_settle(ds_outputs outputs, ds_delivery* delivery, uint64_t* outstanding);
/* Releases the handle. Outputs that were not taken are dropped, and so are those that come. */
DS_API ds_status ds_outputs_release(ds_outputs outputs);

/* Takes rows that await actions of the caller's, from any thread: all rows of a replica and a policy that can step. Until
   they are returned their episodes wait, and on CUDA those of the whole replica; no others of the policy are asked for.
   Waits for rows at most timeout_ns (negative: without limit). PENDING if none came in this time. CLOSED if the engine has
   ended. */
DS_API ds_status ds_engine_take_rows(ds_engine engine, int64_t timeout_ns, ds_rows* rows);
/* Returns rows once. actions: [R, 4], which are copied. cause: 0; or a positive number: the rows' episodes end before this
   step, as FAILED, and actions may be null. */
DS_API ds_status ds_engine_return_rows(ds_engine engine, uint64_t id, const int32_t* actions, int64_t cause);

/* Adds a replica while the others play. simulator: a configuration, in which num_worlds, num_threads and the device may
   differ from the engine's; what results depend on is the same, or the field is refused. *number: of the replica; none
   is used twice, so that an engine has at most DS_MAX_REPLICAS in its time. */
DS_API ds_status ds_engine_add_replica(ds_engine engine, ds_config simulator, int64_t* number);
/* Ends a replica soon: others play what it has. The engine ends with the last one. Does not wait. */
DS_API ds_status ds_engine_end_replica(ds_engine engine, int64_t number);
/* Ends the engine soon: requests without a result get one, FAILED. Does not wait. */
DS_API ds_status ds_engine_close(ds_engine engine);
/* Waits until all replicas have ended and all requests are answered, at most timeout_ns (negative: without limit). PENDING
   if that is not so. */
DS_API ds_status ds_engine_join(ds_engine engine, int64_t timeout_ns);
/* Closes the engine and releases the handle. Does not wait: replicas end by themselves. */
DS_API ds_status ds_engine_release(ds_engine engine);

#endif
