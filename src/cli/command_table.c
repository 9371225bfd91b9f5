/* The one table of commands.  Order here is the order of `plumb --help`. */
#include "cli/chat_commands.h"
#include "cli/commands.h"

#define CHAT_COMMAND_LINE(name, text) "  " text "\n"

const cli_command cli_commands[] = {
    {CLI_CHAT, "chat", "talk with the model", "", 0, 0,
     "Without -p the conversation is read line by line: on a terminal with line editing and "
     "history, otherwise each line of standard input is one turn of one conversation. Answers "
     "stream to standard output, speed goes to standard error. On a terminal the model's thinking is "
     "shown dimmed; elsewhere only the answer is written.\n\n"
     "Text that is pasted into a terminal is one message, however many lines it has. A line that ends in "
     "a backslash goes on with the next one. A line \"\"\" begins a message of several lines, taken as "
     "they are up to the next such line.\n\n"
     "Arrows find what was typed before, also in other runs; Tab completes commands, and files after /save "
     "and /load. Ctrl-C stops the answer, of which the conversation keeps what was said; at the prompt it "
     "clears the line, and again it leaves, as Ctrl-D does.\n\n"
     "A line that starts with a slash is a command (two slashes stand for one in the text):\n\n"
     CLI_CHAT_COMMANDS(CHAT_COMMAND_LINE),
     cli_run_chat},
    {CLI_COMPLETE, "complete", "continue a text", "", 0, 0,
     "The model sees its begin-of-sentence token and the prompt, without any chat format, and "
     "the continuation streams to standard output. Needs -p or --prompt-file.",
     cli_run_complete},
    {CLI_SERVE, "serve", "answer requests over HTTP", "", 0, 0,
     "Serves the model until Ctrl-C, to programs that speak the OpenAI or Anthropic interfaces, and to "
     "browsers a page to chat on:\n\n"
     "  /                          the page\n"
     "  /v1/chat/completions       OpenAI\n"
     "  /v1/completions            OpenAI\n"
     "  /v1/responses              OpenAI\n"
     "  /v1/messages               Anthropic, and /v1/messages/count_tokens\n"
     "  /v1/models                 the model's name\n"
     "  /tokenize, /detokenize     text to ids and back\n"
     "  /health, /metrics          whether it is up; figures for Prometheus\n"
     "  /props, /slots             what is served, and what is being computed\n\n"
     "Answers that are written at the same time share every read of the weights and have the bits they "
     "would have alone. Conversations that come back find what was computed for them, with --session-dir "
     "also after a restart. --temp and its like apply where a request says nothing.\n\n"
     "Ctrl-C finishes the answers that are being written, a second one does not wait. docs/server.md "
     "tells what is understood of each interface.",
     cli_run_serve},
    {CLI_LOGITS, "logits", "token ids in, float32 logits out", "", 0, 0,
     "Evaluates the ids in --tokens-file and writes one row of logits per position, from --from "
     "to the end, as little-endian float32 to --out. Prints the XXH3-64 hash of that file. "
     "Neither --threads, --prefill-chunk nor --decode-from changes a bit of it.",
     cli_run_logits},
    {CLI_TOKENIZE, "tokenize", "text to token ids and back", "[TEXT | ID...]", 0, CLI_ANY_NUMBER,
     "Prints the ids of TEXT, or with --decode the text of the IDs. Nothing is added: no "
     "begin-of-sentence token, no chat format. The model may also be a tokenizer.json.",
     cli_run_tokenize},
    {CLI_INSPECT, "inspect", "show what a model is made of", "[MODEL]", 0, 1,
     "Prints the configuration, which release it is and by what that is known, what digests there are "
     "and whether the files are still theirs, which layers share what, and the tensors and bytes of "
     "each part, without reading any weights. MODEL is what -m takes.",
     cli_run_inspect},
    {CLI_PLAN, "plan", "show what a machine will do with a model", "[MODEL]", 0, 1,
     "Prints how memory is split, how many experts have a slot, how often a token finds its "
     "experts there, and bounds on speed: bytes that must move over the rates at which they can. "
     "Serial means that reading and computing take turns, overlapped that the slowest of them "
     "decides.\n\n"
     "With a MODEL its drive and this machine's memory are measured, for about two seconds. Without "
     "one the released geometry is planned on paper, from the given rates:\n\n"
     "  plumb plan --memory 128GB --disk-rate 13 --memory-rate 614\n\n"
     "--trace replays recorded routes through the expert cache at several sizes.",
     cli_run_plan},
    {CLI_BENCH, "bench", "measure speed over the length of the context", "[CSV...]", 0, CLI_ANY_NUMBER,
     "Walks one sequence of tokens through frontiers: --ctx-start tokens, then --step-incr more each "
     "time, the last at --ctx-max. At each the newest tokens are evaluated (prefill), then --gen-tokens "
     "are generated one at a time, always the likeliest that does not end the sentence, and taken back. "
     "Only these two are timed. One CSV row for each frontier goes to standard output or --csv:\n\n"
     "  ctx_tokens         the frontier\n"
     "  prefill_tokens     since the frontier before\n"
     "  prefill_tps        of these, tokens per second\n"
     "  gen_tokens         generated here\n"
     "  gen_tps            of all of them\n"
     "  gen_first_ms       the first alone, in milliseconds\n"
     "  gen_steady_tokens  the others\n"
     "  gen_steady_tps     of the others\n"
     "  kvcache_bytes      the session's state at the frontier\n"
     "  hit_rate           experts found in memory, 0 to 1; empty without streaming\n"
     "  bytes_read         of experts\n"
     "  miss_ms            waited for experts\n"
     "  engram_rows        asked for\n"
     "  peak_rss_bytes     of the process so far\n"
     "  prefill_seconds, gen_seconds\n"
     "  repeat             which walk, from 1\n\n"
     "The tokens are those of --prompt-file after the begin-of-sentence token, the ids of --tokens-file, "
     "or made up from --seed. The walk ends where they end, or the context does; what is cut is said. "
     "Where the context has no room for all --gen-tokens, as many are generated as fit. Ctrl-C keeps "
     "the rows there are.\n\n"
     "Logits are little-endian float32, as plumb logits writes them: those of the last token of each "
     "frontier, and those that follow each generated token, in order.\n\n"
     "With --plot nothing is measured: the CSV files, up to six, plumb's own or another program's, are "
     "drawn, found by the names of their columns. Repeats are points, and curves go through their "
     "medians.\n\n"
     "  plumb bench --plot speed.svg before.csv after.csv\n\n"
     "--vs measures this command line (A) against another one (B), which the shell runs; both get --csv "
     "at their end and DS4_BENCH_DECODE_LOGITS_DUMP in their environment, as other programs of the "
     "field take them. Runs are whole processes, in the order A B B A. Printed are, for each frontier, "
     "the ratios of speed, A over B, of neighbouring runs. A is slower where their median is below 1 "
     "less the threshold, and so are all of them but an eighth. The logits of all runs are compared bit "
     "by bit.\n\n"
     "  plumb bench -m MODEL --vs 'old/plumb bench -m MODEL'\n\n"
     "Exit status 1: A is slower, or bits differ that may not.",
     cli_run_bench},
    {CLI_COMPARE, "compare", "how far two dumps of logits are apart", "A B", 2, 2,
     "A and B are files of raw little-endian float32 rows, as plumb logits and plumb bench write them, "
     "or folders of such files, of which those with the same name are compared. Prints how many rows "
     "have equal bits, where the first difference is, the largest and the median difference, how often "
     "the best token is the same and how many of the five best are, and the divergence KL(A||B). The "
     "lower one of two middle values is the median; of equal logits the lower id is better.\n\n"
     "The size of the vocabulary is --vocab, or that of the model -m, or 129280 if the sizes are "
     "multiples of it.\n\n"
     "Exit status 0: every bit equal, or no difference above --tolerance. A NaN or an infinity is an "
     "error, told by its place; so are files of different length and, in folders, names without a "
     "partner, after the comparison of what there is.",
     cli_run_compare},
    {CLI_CONVERT, "convert", "make one file of a released folder", "SRC DST", 2, 2,
     "Writes the model in the folder SRC as one GGUF file, DST, and proves that nothing was lost: "
     "everything on disk is read back and, decoded to the released bytes, compared with digests "
     "taken of SRC while writing, before the file gets its name. SRC is only read, and DST must lie "
     "outside of it.\n\n"
     "Experts keep their FP4 codes and scales, rows of the Engram tables have theirs side by side, "
     "everything else keeps its bytes; --dense chooses for dense matrices. The engine computes the "
     "same bits from all of them.\n\n"
     "Until it is whole and checked the file is called DST.part. Interrupted or killed, the same "
     "command goes on from there.",
     cli_run_convert},
    {CLI_PACK, "pack", "store a converted file's F32 matrices as BF16", "SRC DST", 2, 2,
     "Clones the converted file SRC as DST and stores every dense F32 matrix as BF16 of which each "
     "value fits; the others stay as they are. What was written is read back and compared with SRC "
     "bit for bit before the file gets its name. SRC is only read. Where the file system can share "
     "blocks between files, everything else takes no space.",
     cli_run_pack},
    {CLI_AUDIT, "audit", "read all of a model and compare", "MODEL", 1, 1,
     "Reads every payload from the disk, refuses NaN, and compares: a converted file with the digests "
     "inside it, a folder with its receipt, either with the folder of --source. The first difference "
     "is told by file, tensor and place; with --source also row, column and both values.\n\n"
     "The receipt of a MODEL is MODEL.audit.json, beside it. --record writes it after an audit that "
     "found no fault; a receipt that differs is not replaced. With --verified, chat, complete and "
     "logits ask for it.\n\n"
     "Exit status 0: no fault. A folder without a receipt has only its values checked.",
     cli_run_audit},
    {CLI_SYNTH, "synth", "write a synthetic model", "VARIANT DIR", 2, 2,
     "Writes random weights in the released layout, byte for byte the same on every machine. "
     "VARIANT is one of\n\n"
     "  tiny     6 layers that meet every kind of layer, 2 MB\n"
     "  deep40   the released topology with narrow layers, 15 MB\n"
     "  dspark   tiny with draft stages\n"
     "  vision   tiny with an image tower\n"
     "  release  the released geometry, 510 GB (--sparse: 3 GB)\n\n"
     "DIR must be empty or absent. Nothing in it opens as a model before everything is written; "
     "Ctrl-C removes what there is.",
     cli_run_synth},
    {CLI_COMPLETION, "completion", "print shell completions", "bash|zsh", 1, 1,
     "Prints a script for the shell:\n\n  source <(plumb completion bash)", cli_run_completion},
    {CLI_HELP, "help", "show help for a command", "[COMMAND]", 0, 1, "", cli_run_help},
    {CLI_VERSION, "version", "print the version", "", 0, 0, "", cli_run_version},
};

const int cli_n_commands = (int)(sizeof cli_commands / sizeof cli_commands[0]);
