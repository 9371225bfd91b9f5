/* The one table of options.  Order here is the order of --help. */
#include "cli/options.h"

#define FIELD(member) offsetof(cli_options, member)
#define LEAST_RATE 1e-3
#define MOST_RATE 1e6

enum {
    GENERATES = CLI_CHAT | CLI_COMPLETE,
    EVALUATES = GENERATES | CLI_LOGITS | CLI_BENCH,
    LOADS = EVALUATES | CLI_TOKENIZE | CLI_INSPECT,
    SHOWS = CLI_INSPECT | CLI_PLAN | CLI_COMPARE,
    COMPUTES = EVALUATES | CLI_SYNTH,
    WRITES = CLI_CONVERT | CLI_PACK,
    READS_ALL = WRITES | CLI_AUDIT,
    EVERYONE = ~0
};

const cli_option cli_option_rows[] = {
    /* the model and the machine */
    {.name = "model", .brief = "-m", .value = "MODEL", .kind = CLI_PATH, .field = FIELD(model),
     .commands = LOADS,
     .help = "folder with config.json and safetensors, converted file, or the id of a model in the "
             "Hugging Face cache (default: the demo model that comes with plumb)"},
    {.name = "ctx", .brief = "-c", .value = "N", .kind = CLI_INTEGER, .field = FIELD(context),
     .low = 1, .high = INT64_C(1) << 24, .commands = GENERATES | CLI_LOGITS,
     .help = "most positions the session may hold (default: the model's maximum)"},
    {.name = "threads", .brief = "-t", .value = "N", .kind = CLI_INTEGER, .field = FIELD(threads),
     .low = 1, .high = 1024, .commands = COMPUTES | CLI_PLAN,
     .help = "threads that compute (default: one per core); never changes a result"},
    {.name = "prefill-chunk", .alias = "--chunk", .value = "N", .kind = CLI_INTEGER,
     .field = FIELD(chunk), .low = 1, .high = INT64_C(1) << 20, .commands = EVALUATES,
     .help = "most tokens evaluated at once (default: 256, streaming 256 to 8192 by memory); never "
             "changes a result"},
    {.name = "cpu", .kind = CLI_FLAG, .field = FIELD(cpu), .commands = EVALUATES,
     .help = "compute on the CPU, the only backend of this build"},

    {.name = "verified", .kind = CLI_FLAG, .field = FIELD(verified), .commands = EVALUATES,
     .help = "run only a model that has a receipt of plumb audit --record, and no file of it written "
             "since"},

    /* weights larger than memory */
    {.name = "ssd-streaming", .kind = CLI_FLAG, .field = FIELD(streaming), .commands = EVALUATES,
     .help = "read experts from the disk as they are needed and keep what memory allows (the default "
             "where a model does not fit into memory); never changes a result"},
    {.name = "ssd-streaming-cache-experts", .value = "N|NGB", .kind = CLI_EXPERTS,
     .field = FIELD(cache_experts), .commands = EVALUATES,
     .help = "stream with room for N experts, or with NGB of memory for everything: dense weights, "
             "context, working memory, and experts in what is left (default: the machine's memory "
             "less an eighth, at least 4 GB)"},
    {.name = "ssd-streaming-layers", .kind = CLI_FLAG, .field = FIELD(layer_buffers),
     .commands = EVALUATES,
     .help = "stream through buffers for one layer and the next, keeping no expert for later tokens"},
    {.name = "ssd-streaming-cold", .kind = CLI_FLAG, .field = FIELD(cold), .commands = EVALUATES,
     .help = "stream without first reading the experts that earlier runs used most"},
    {.name = "trace-routes", .value = "FILE", .kind = CLI_PATH, .field = FIELD(trace_routes),
     .commands = EVALUATES,
     .help = "record which experts every token chose, for plumb plan --trace"},

    /* what to say */
    {.name = "prompt", .brief = "-p", .value = "TEXT", .kind = CLI_TEXT, .field = FIELD(prompt),
     .excludes = "prompt-file", .commands = GENERATES, .help = "the prompt"},
    {.name = "prompt-file", .value = "FILE", .kind = CLI_PATH, .field = FIELD(prompt_file),
     .commands = GENERATES | CLI_BENCH, .help = "read the prompt from FILE (- is standard input)"},
    {.name = "system", .brief = "-sys", .value = "TEXT", .kind = CLI_TEXT, .field = FIELD(system),
     .commands = CLI_CHAT, .help = "system message at the start of the conversation"},
    {.name = "tokens", .brief = "-n", .value = "N", .kind = CLI_INTEGER, .field = FIELD(n_tokens),
     .low = 1, .high = INT64_C(1) << 24, .commands = GENERATES,
     .help = "most tokens of one answer (default: until the model ends it)"},
    {.name = "think-level", .value = "LEVEL", .kind = CLI_LEVEL, .field = FIELD(think_level),
     .preset = "75", .commands = CLI_CHAT,
     .help = "how thoroughly to think before answering, 0 to 100, or low (50), high (75), max "
             "(100); 0 answers at once"},
    {.name = "nothink", .kind = CLI_FLAG, .field = FIELD(nothink), .excludes = "think-level",
     .commands = CLI_CHAT, .help = "answer at once, as --think-level 0"},

    /* how to choose tokens */
    {.name = "temp", .value = "T", .kind = CLI_NUMBER, .field = FIELD(temperature), .least = 0,
     .most = 100, .preset = "1", .commands = GENERATES,
     .help = "sampling temperature; 0 always takes the likeliest token"},
    {.name = "top-p", .value = "P", .kind = CLI_NUMBER, .field = FIELD(top_p), .least = 0,
     .most = 1, .preset = "0.95", .commands = GENERATES,
     .help = "sample from the likeliest tokens that together reach probability P"},
    {.name = "top-k", .value = "K", .kind = CLI_INTEGER, .field = FIELD(top_k), .low = 0,
     .high = INT32_MAX, .preset = "0", .commands = GENERATES,
     .help = "sample from the K likeliest tokens; 0 is off"},
    {.name = "min-p", .value = "P", .kind = CLI_NUMBER, .field = FIELD(min_p), .least = 0,
     .most = 1, .preset = "0", .commands = GENERATES,
     .help = "drop tokens less likely than P times the likeliest; 0 is off"},
    {.name = "seed", .value = "N", .kind = CLI_SEED, .field = FIELD(seed), .preset = "0",
     .commands = GENERATES,
     .help = "seed of the sampler: the same seed gives the same text on every machine"},
    {.name = "logit-bias", .value = "ID=B", .kind = CLI_BIAS, .field = FIELD(bias),
     .commands = GENERATES, .help = "add B to the logit of token ID; may be repeated"},
    {.name = "logprobs", .value = "N", .kind = CLI_INTEGER, .field = FIELD(logprobs), .low = 0,
     .high = 64, .commands = CLI_COMPLETE,
     .help = "print one JSON line per token with its log-probability and the N best ones instead "
             "of text"},

    /* logits */
    {.name = "tokens-file", .value = "IDS", .kind = CLI_PATH, .field = FIELD(tokens_file),
     .excludes = "prompt-file", .commands = CLI_LOGITS | CLI_BENCH,
     .help = "token ids separated by white space (- is standard input)"},
    {.name = "out", .value = "FILE", .kind = CLI_PATH, .field = FIELD(out), .commands = CLI_LOGITS,
     .help = "where the logits go; written whole or not at all"},
    {.name = "from", .value = "N", .kind = CLI_INTEGER, .field = FIELD(from), .low = 0,
     .high = INT64_C(1) << 24, .preset = "0", .commands = CLI_LOGITS,
     .help = "first position whose logits are written"},
    {.name = "decode-from", .value = "N", .kind = CLI_INTEGER, .field = FIELD(decode_from),
     .low = 0, .high = INT64_C(1) << 24, .commands = CLI_LOGITS,
     .help = "feed positions from N on one at a time (default: none)"},

    /* tokenize */
    {.name = "file", .value = "FILE", .kind = CLI_PATH, .field = FIELD(text_file),
     .commands = CLI_TOKENIZE, .help = "read the text or the ids from FILE (- is standard input)"},
    {.name = "decode", .kind = CLI_FLAG, .field = FIELD(decode), .excludes = "added count",
     .commands = CLI_TOKENIZE, .help = "ids to text"},
    {.name = "added", .kind = CLI_FLAG, .field = FIELD(added), .commands = CLI_TOKENIZE,
     .help = "let control tokens such as <think> match inside the text"},
    {.name = "count", .kind = CLI_FLAG, .field = FIELD(count), .commands = CLI_TOKENIZE,
     .help = "print the number of ids instead of the ids"},

    /* inspect */
    {.name = "json", .kind = CLI_FLAG, .field = FIELD(json), .commands = SHOWS,
     .help = "print one JSON object"},
    {.name = "tensors", .kind = CLI_FLAG, .field = FIELD(list_tensors), .commands = CLI_INSPECT,
     .help = "list every tensor as well"},

    /* plan */
    {.name = "model", .brief = "-m", .value = "MODEL", .kind = CLI_PATH, .field = FIELD(model),
     .commands = CLI_PLAN,
     .help = "as for the other commands (default: the released geometry, on paper)"},
    {.name = "memory", .value = "NGB", .kind = CLI_BYTES, .field = FIELD(memory),
     .commands = CLI_PLAN,
     .help = "memory of the machine (default: this machine's); an eighth, at least 4 GB, is left "
             "to the operating system"},
    {.name = "disk-rate", .value = "GB/S", .kind = CLI_NUMBER, .field = FIELD(disk_rate),
     .least = LEAST_RATE, .most = MOST_RATE, .commands = CLI_PLAN,
     .help = "what the drive reads (default: measured on the model's files)"},
    {.name = "memory-rate", .value = "GB/S", .kind = CLI_NUMBER, .field = FIELD(memory_rate),
     .least = LEAST_RATE, .most = MOST_RATE, .commands = CLI_PLAN,
     .help = "what memory reads (default: measured)"},
    {.name = "device-memory", .value = "NGB", .kind = CLI_BYTES, .field = FIELD(device_memory),
     .commands = CLI_PLAN,
     .help = "memory of a device that computes; needs --device-rate and --link-rate"},
    {.name = "device-rate", .value = "GB/S", .kind = CLI_NUMBER, .field = FIELD(device_rate),
     .least = LEAST_RATE, .most = MOST_RATE, .commands = CLI_PLAN,
     .help = "what the device reads of its memory"},
    {.name = "link-rate", .value = "GB/S", .kind = CLI_NUMBER, .field = FIELD(link_rate),
     .least = LEAST_RATE, .most = MOST_RATE, .commands = CLI_PLAN,
     .help = "what the link from memory to the device carries"},
    {.name = "compute", .value = "TFLOPS", .kind = CLI_NUMBER, .field = FIELD(compute),
     .least = LEAST_RATE, .most = MOST_RATE, .commands = CLI_PLAN,
     .help = "arithmetic that the machine sustains (default: no bound from it)"},
    {.name = "trace", .value = "FILE", .kind = CLI_PATH, .field = FIELD(trace),
     .commands = CLI_PLAN,
     .help = "replay recorded routes instead of using the published hit rates"},
    {.name = "ctx", .brief = "-c", .value = "N", .kind = CLI_INTEGER, .field = FIELD(context),
     .low = 1, .high = INT64_C(1) << 24, .commands = CLI_PLAN,
     .help = "positions of the session (default: the model's maximum, at most 65536)"},
    {.name = "prefill-chunk", .alias = "--chunk", .value = "N", .kind = CLI_INTEGER,
     .field = FIELD(chunk), .low = 1, .high = INT64_C(1) << 20, .commands = CLI_PLAN,
     .help = "tokens evaluated at once (default: up to 8192, as memory allows)"},

    /* bench */
    {.name = "ctx-start", .value = "N", .kind = CLI_INTEGER, .field = FIELD(ctx_start), .low = 1,
     .high = INT64_C(1) << 24, .preset = "2048", .commands = CLI_BENCH,
     .help = "tokens of context at the first frontier"},
    {.name = "ctx-max", .value = "N", .kind = CLI_INTEGER, .field = FIELD(ctx_max), .low = 1,
     .high = INT64_C(1) << 24, .preset = "32768", .commands = CLI_BENCH,
     .help = "tokens of context at the last frontier"},
    {.name = "step-incr", .value = "N", .kind = CLI_INTEGER, .field = FIELD(step_increment), .low = 1,
     .high = INT64_C(1) << 24, .preset = "2048", .commands = CLI_BENCH,
     .help = "tokens from one frontier to the next"},
    {.name = "step-mul", .value = "X", .kind = CLI_NUMBER, .field = FIELD(step_multiplier),
     .least = 1, .most = 1e6, .preset = "1", .commands = CLI_BENCH,
     .help = "above 1, the next frontier is X times this one, rounded up; --step-incr is not used"},
    {.name = "ctx-alloc", .brief = "-c", .alias = "--ctx", .value = "N", .kind = CLI_INTEGER,
     .field = FIELD(context), .low = 1, .high = INT64_C(1) << 24, .commands = CLI_BENCH,
     .help = "most positions the session may hold, cut to the model's maximum (default: --ctx-max and "
             "--gen-tokens and one)"},
    {.name = "gen-tokens", .brief = "-n", .alias = "--tokens", .value = "N", .kind = CLI_INTEGER,
     .field = FIELD(gen_tokens), .low = 0, .high = INT64_C(1) << 24, .preset = "128",
     .commands = CLI_BENCH, .help = "tokens to generate at each frontier; 0 measures prefill alone"},
    {.name = "teacher-forced-decode", .kind = CLI_FLAG, .field = FIELD(teacher_forced),
     .commands = CLI_BENCH,
     .help = "feed the prompt's own next tokens instead of the likeliest ones"},
    {.name = "seed", .value = "N", .kind = CLI_SEED, .field = FIELD(seed), .preset = "0",
     .commands = CLI_BENCH, .help = "seed of the made-up tokens that stand in for a prompt"},
    {.name = "repeat", .value = "N", .kind = CLI_INTEGER, .field = FIELD(repeat), .low = 1,
     .high = INT64_C(1) << 20, .preset = "1", .commands = CLI_BENCH,
     .help = "do the whole walk N times; logits that differ from those of the first are an error"},
    {.name = "csv", .value = "FILE", .kind = CLI_PATH, .field = FIELD(csv), .commands = CLI_BENCH,
     .help = "where the rows go; the file has its name once the walk has ended (default: standard "
             "output)"},
    {.name = "show-output", .kind = CLI_FLAG, .field = FIELD(show_output), .commands = CLI_BENCH,
     .help = "print what the first walk generates on standard error"},
    {.name = "dump-frontier-logits-dir", .value = "DIR", .kind = CLI_PATH,
     .field = FIELD(frontier_logits_dir), .commands = CLI_BENCH,
     .help = "write each frontier's logits to DIR/frontier-NNNNNNNN.f32"},
    {.name = "decode-logits-dump", .value = "FILE", .kind = CLI_PATH,
     .environment = "DS4_BENCH_DECODE_LOGITS_DUMP", .field = FIELD(decode_logits_dump),
     .commands = CLI_BENCH,
     .help = "write the logits of every generated token, of the first walk, to FILE"},
    {.name = "decode-logits-hash", .kind = CLI_FLAG, .environment = "DS4_BENCH_DECODE_LOGITS_HASH",
     .field = FIELD(decode_logits_hash), .commands = CLI_BENCH,
     .help = "print the XXH3-64 hash of what --decode-logits-dump would write"},
    {.name = "snapshot-max-bytes", .value = "N|NGB|unlimited", .kind = CLI_LIMIT,
     .environment = "DS4_BENCH_SNAPSHOT_MAX_BYTES", .field = FIELD(snapshot_max_bytes),
     .preset = "1073741824", .commands = CLI_BENCH,
     .help = "most bytes of state to keep for the way back from generated tokens; where more is "
             "needed, the tokens before them are evaluated again"},
    {.name = "plot", .value = "OUT.svg", .kind = CLI_PATH, .field = FIELD(plot), .excludes = "vs csv",
     .commands = CLI_BENCH,
     .help = "draw the CSV files that follow as a picture, written whole or not at all, and in the "
             "terminal"},
    {.name = "vs", .value = "COMMAND", .kind = CLI_TEXT, .field = FIELD(vs),
     .excludes = "csv decode-logits-dump", .commands = CLI_BENCH,
     .help = "run this command line and COMMAND in turns, and compare"},
    {.name = "vs-rounds", .value = "N", .kind = CLI_INTEGER, .field = FIELD(vs_rounds), .low = 1,
     .high = 1000, .preset = "2", .commands = CLI_BENCH,
     .help = "how often to run A B B A: two pairs each time"},
    {.name = "vs-threshold", .value = "PERCENT", .kind = CLI_NUMBER, .field = FIELD(vs_threshold),
     .least = 0, .most = 100, .preset = "3", .commands = CLI_BENCH,
     .help = "how much slower is a regression"},
    {.name = "vs-bits-may-differ", .kind = CLI_FLAG, .field = FIELD(vs_bits_may_differ),
     .commands = CLI_BENCH, .help = "different logits are told, but no failure"},

    /* compare */
    {.name = "model", .brief = "-m", .value = "MODEL", .kind = CLI_PATH, .field = FIELD(model),
     .commands = CLI_COMPARE, .help = "the model whose vocabulary the logits have"},
    {.name = "vocab", .value = "N", .kind = CLI_INTEGER, .field = FIELD(vocab), .low = 1,
     .high = INT64_C(1) << 24, .excludes = "model", .commands = CLI_COMPARE,
     .help = "numbers in a row"},
    {.name = "tolerance", .value = "X", .kind = CLI_NUMBER, .field = FIELD(tolerance), .least = 0,
     .most = 1e30, .commands = CLI_COMPARE,
     .help = "exit status 0 also with differences of at most X"},

    /* synth */
    {.name = "layers", .value = "N", .kind = CLI_INTEGER, .field = FIELD(layers), .low = 1,
     .high = 40, .commands = CLI_SYNTH,
     .help = "release: only the first N layers, without draft and vision (default: everything)"},
    {.name = "sparse", .kind = CLI_FLAG, .field = FIELD(sparse), .commands = CLI_SYNTH,
     .help = "release: holes in the files instead of experts, tables and dense matrices"},
    {.name = "sparse-tables", .kind = CLI_FLAG, .field = FIELD(sparse_tables),
     .commands = CLI_SYNTH,
     .help = "release: holes in the files instead of the Engram tables alone"},
    {.name = "seed", .value = "N", .kind = CLI_SEED, .field = FIELD(seed), .preset = "1",
     .commands = CLI_SYNTH, .help = "the same seed gives the same files on every machine"},
    {.name = "force", .kind = CLI_FLAG, .field = FIELD(force), .commands = CLI_SYNTH,
     .help = "write into a folder that is not empty"},

    /* converted files */
    {.name = "dense", .value = "f32|bf16|fp8", .kind = CLI_TEXT, .field = FIELD(dense),
     .preset = "f32", .commands = CLI_CONVERT,
     .help = "how dense matrices are stored: their exact values as f32 or, where every value of a "
             "matrix fits, as bf16; or codes and scales as released"},
    {.name = "force", .kind = CLI_FLAG, .field = FIELD(force), .commands = WRITES,
     .help = "replace a file that is already there"},
    {.name = "jobs", .brief = "-j", .value = "N", .kind = CLI_INTEGER, .field = FIELD(jobs), .low = 1,
     .high = 256, .commands = READS_ALL,
     .help = "tensors at work at once (default: four per core, at most 8)"},
    {.name = "source", .value = "DIR", .kind = CLI_PATH, .field = FIELD(source),
     .commands = CLI_AUDIT,
     .help = "compare with the released folder DIR, value by value"},
    {.name = "sample", .kind = CLI_FLAG, .field = FIELD(sample), .excludes = "record",
     .commands = CLI_AUDIT,
     .help = "a quick look: read about 1 % of the model, the same part every time"},
    {.name = "record", .kind = CLI_FLAG, .field = FIELD(record), .commands = CLI_AUDIT,
     .help = "after a clean audit, write the receipt MODEL.audit.json"},

    /* every command */
    {.name = "quiet", .brief = "-q", .kind = CLI_FLAG, .field = FIELD(quiet),
     .commands = COMPUTES | SHOWS | READS_ALL,
     .help = "no log, progress or speed on standard error"},
    {.name = "man", .kind = CLI_FLAG, .field = FIELD(man), .commands = CLI_HELP,
     .help = "print the manual page as man(7) source"},
    {.name = "help", .brief = "-h", .kind = CLI_FLAG, .field = FIELD(help),
     .commands = (unsigned)EVERYONE, .help = "show this help"},
};

_Static_assert(sizeof cli_option_rows / sizeof cli_option_rows[0] <= 64 * CLI_GIVEN_WORDS,
               "cli_options.given has a bit for each row");
const int cli_n_options = (int)(sizeof cli_option_rows / sizeof cli_option_rows[0]);
