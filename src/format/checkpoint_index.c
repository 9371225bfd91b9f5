/* The index of a sharded checkpoint. */
#include "format/checkpoint_index.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "format/json_scan.h"
#include "format/safetensors.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_INDEX_BYTES = 100 << 20, /* the release's is 7.5 MB */
    MAX_FILES = 4096             /* all stay open; the release has 48 */
};

/* A file beside the index, and nothing that leads elsewhere. */
static bool is_plain_name(const char *file) {
    return *file && file[0] != '.' && !strchr(file, '/') && !strstr(file, "..");
}

/* Where `file` is, or belongs, in the sorted list. */
static int64_t place_of(const plumb_index *index, const char *file, bool *present) {
    int64_t low = 0, high = index->n_files;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(index->files[middle], file);
        if (order == 0) {
            *present = true;
            return middle;
        }
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    *present = false;
    return low;
}

static void add_file(plumb_json_scan *scan, plumb_index *index, const char *file) {
    bool present;
    int64_t place = place_of(index, file, &present);
    if (present) return;
    if (!is_plain_name(file) || index->n_files == MAX_FILES) {
        plumb__scan_fault(scan, "weight_map", plumb__format("\"%.150s\"", file).s,
                          index->n_files == MAX_FILES
                              ? "at most 4096 shards"
                              : "a file name without '/', \"..\" or a leading dot");
        return;
    }
    const char **grown = plumb__grow(index->files, &index->files_capacity, index->n_files + 1,
                                     sizeof *grown);
    if (!grown) {
        scan->status = plumb__fail_memory(scan->err, "shard list", sizeof *grown);
        return;
    }
    index->files = grown;
    memmove(grown + place + 1, grown + place, (size_t)(index->n_files - place) * sizeof *grown);
    grown[place] = file;
    index->n_files++;
}

static void read_weight_map(plumb_json_scan *scan, plumb_index *index) {
    plumb__scan_open(scan, '{');
    for (bool first = true; plumb__scan_next(scan, '}', &first);) {
        char *name = plumb__scan_key(scan);
        const char *file = plumb__scan_string(scan);
        if (scan->status != PLUMB_OK) return;
        plumb__safetensors_modern_name(name);
        add_file(scan, index, file);
        plumb_index_entry *grown =
            plumb__grow(index->entries, &index->capacity, index->count + 1, sizeof *grown);
        if (!grown) {
            scan->status = plumb__fail_memory(scan->err, "index", sizeof *grown);
            return;
        }
        index->entries = grown;
        grown[index->count++] = (plumb_index_entry){name, file};
    }
}

static void read_metadata(plumb_json_scan *scan, plumb_index *index) {
    plumb__scan_open(scan, '{');
    for (bool first = true; plumb__scan_next(scan, '}', &first);) {
        if (!strcmp(plumb__scan_key(scan), "total_size"))
            index->total_size = plumb__scan_integer(scan);
        else plumb__scan_skip(scan);
    }
}

static int by_name(const void *a, const void *b) {
    const plumb_index_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

plumb_status plumb__index_parse(char *text, int64_t size, const char *path, plumb_index *index,
                                plumb_error *err) {
    *index = (plumb_index){.text = text, .total_size = -1};
    plumb_json_scan scan = {.text = text, .size = size, .path = path, .err = err};
    bool map_seen = false, metadata_seen = false;
    plumb__scan_open(&scan, '{');
    for (bool first = true; plumb__scan_next(&scan, '}', &first);) {
        const char *key = plumb__scan_key(&scan);
        bool is_map = !strcmp(key, "weight_map"), is_metadata = !strcmp(key, "metadata");
        if ((is_map && map_seen) || (is_metadata && metadata_seen))
            plumb__scan_fault(&scan, key, "the key again", "each key once");
        map_seen |= is_map;
        metadata_seen |= is_metadata;
        if (is_map) read_weight_map(&scan, index);
        else if (is_metadata) read_metadata(&scan, index);
        else plumb__scan_skip(&scan);
    }
    plumb__scan_end(&scan);
    if (index->count == 0)
        plumb__scan_fault(&scan, "weight_map", map_seen ? "no entry" : "no such key",
                          "tensor names and their files");
    if (scan.status == PLUMB_OK) {
        qsort(index->entries, (size_t)index->count, sizeof *index->entries, by_name);
        for (int64_t i = 1; i < index->count && scan.status == PLUMB_OK; i++)
            if (!strcmp(index->entries[i - 1].name, index->entries[i].name))
                scan.status = plumb__fail(err, PLUMB_ERROR_FORMAT, path, index->entries[i].name,
                                          index->entries[i].name - text, "the name again",
                                          "each tensor once");
    }
    if (scan.status != PLUMB_OK) plumb__index_free(index);
    return scan.status;
}

plumb_status plumb__index_load(const char *path, plumb_index *index, plumb_error *err) {
    char *text;
    int64_t size;
    plumb_status status = plumb__file_load(path, MAX_INDEX_BYTES, &text, &size, err);
    if (status != PLUMB_OK) return status;
    return plumb__index_parse(text, size, path, index, err);
}

void plumb__index_free(plumb_index *index) {
    free(index->text);
    free(index->entries);
    free(index->files);
    *index = (plumb_index){0};
}
