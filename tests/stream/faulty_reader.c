#include "stream/faulty_reader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One read on its way through the inner reader, or held back afterwards. */
typedef struct passage {
    plumb_read inner;
    plumb_read *outer;
    struct faulty_reader *owner;
    struct passage *next; /* of those that are free, or held */
    int64_t number, result;
    int64_t behind; /* reads that have to come back first */
} passage;

typedef struct faulty_reader {
    plumb_reader reader;
    plumb_reader *inner;
    pthread_mutex_t lock; /* of all below */
    int64_t reads, faults;
    int inner_reads; /* that the inner reader has */
    passage *free, *held;
    passage *passages; /* [depth] */
    fault_rule *rules;
    int n_rules;
} faulty_reader;

static bool fits(const fault_rule *rule, int64_t number) {
    return rule->every ? number % rule->nth == 0 : number == rule->nth;
}

/* Spoils the result; returns how many reads have to come back first. */
static int64_t apply_rules(faulty_reader *self, passage *p) {
    int64_t behind = 0, delay_us = 0;
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < self->n_rules; i++) {
        const fault_rule *rule = &self->rules[i];
        if (!fits(rule, p->number)) continue;
        self->faults++;
        switch (rule->kind) {
        case FAULT_SHORT: {
            int64_t left = rule->amount ? p->result - rule->amount : p->result / 2;
            if (p->result > 0) p->result = left > 1 ? left : 1;
            break;
        }
        case FAULT_ERROR: p->result = -rule->amount; break;
        case FAULT_ZERO: p->result = 0; break;
        case FAULT_DELAY: delay_us = rule->amount < 2000 ? rule->amount : 2000; break;
        case FAULT_HOLD: behind = rule->amount; break;
        }
    }
    pthread_mutex_unlock(&self->lock);
    if (delay_us > 0) nanosleep(&(struct timespec){.tv_nsec = 1000 * delay_us}, NULL);
    return behind;
}

/* Takes out of those held the ones whose time has come: a list.  All of them when the inner reader
 * has nothing left, for then nothing comes back any more. */
static passage *due(faulty_reader *self) {
    passage *list = NULL;
    for (passage **at = &self->held; *at;) {
        passage *p = *at;
        if (--p->behind > 0 && self->inner_reads > 0) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        p->next = list;
        list = p;
    }
    return list;
}

static void hand_back(faulty_reader *self, passage *p) {
    plumb_read *outer = p->outer;
    int64_t result = p->result;
    pthread_mutex_lock(&self->lock);
    p->next = self->free;
    self->free = p;
    pthread_mutex_unlock(&self->lock);
    outer->done(outer, result);
}

static void inner_done(plumb_read *read, int64_t result) {
    passage *p = read->user;
    faulty_reader *self = p->owner;
    p->result = result;
    p->behind = apply_rules(self, p);
    pthread_mutex_lock(&self->lock);
    self->inner_reads--;
    passage *list = due(self);
    if (p->behind > 0 && self->inner_reads > 0) {
        p->next = self->held;
        self->held = p;
    } else { /* before those that it releases */
        p->next = list;
        list = p;
    }
    pthread_mutex_unlock(&self->lock);
    while (list) {
        passage *next = list->next;
        hand_back(self, list);
        list = next;
    }
}

static void start(plumb_reader *reader, plumb_read *read) {
    faulty_reader *self = (faulty_reader *)reader;
    pthread_mutex_lock(&self->lock);
    passage *p = self->free;
    if (!p) {
        fprintf(stderr, "more than %d reads at once\n", reader->depth);
        exit(1);
    }
    self->free = p->next;
    p->number = ++self->reads;
    self->inner_reads++;
    pthread_mutex_unlock(&self->lock);
    p->outer = read;
    p->inner = *read;
    p->inner.done = inner_done;
    p->inner.user = p;
    self->inner->ops->start(self->inner, &p->inner);
}

static void add_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    plumb_reader *inner = ((faulty_reader *)reader)->inner;
    inner->ops->add_memory(inner, memory, bytes);
}

static void remove_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    plumb_reader *inner = ((faulty_reader *)reader)->inner;
    inner->ops->remove_memory(inner, memory, bytes);
}

static void close_reader(plumb_reader *reader) {
    faulty_reader *self = (faulty_reader *)reader;
    self->inner->ops->close(self->inner);
    pthread_mutex_destroy(&self->lock);
    free(self->passages);
    free(self->rules);
    free(self);
}

plumb_reader *faulty_reader_open(plumb_reader *inner, const fault_rule *rules, int n) {
    static const plumb_reader_ops ops = {"faulty", start, add_memory, remove_memory, close_reader};
    faulty_reader *self = calloc(1, sizeof *self);
    passage *passages = calloc((size_t)inner->depth, sizeof *passages);
    if (!self || !passages) {
        fprintf(stderr, "no memory for a faulty reader\n");
        exit(1);
    }
    self->reader = (plumb_reader){&ops, inner->depth};
    self->inner = inner;
    self->passages = passages;
    for (int i = 0; i < inner->depth; i++) {
        passages[i].owner = self;
        passages[i].next = self->free;
        self->free = &passages[i];
    }
    pthread_mutex_init(&self->lock, NULL);
    faulty_reader_set_rules(&self->reader, rules, n);
    return &self->reader;
}

void faulty_reader_set_rules(plumb_reader *reader, const fault_rule *rules, int n) {
    faulty_reader *self = (faulty_reader *)reader;
    fault_rule *copy = calloc((size_t)n + 1, sizeof *copy);
    if (!copy) {
        fprintf(stderr, "no memory for rules\n");
        exit(1);
    }
    if (n > 0) memcpy(copy, rules, (size_t)n * sizeof *copy);
    pthread_mutex_lock(&self->lock);
    free(self->rules);
    self->rules = copy;
    self->n_rules = n;
    self->reads = self->faults = 0;
    pthread_mutex_unlock(&self->lock);
}

int64_t faulty_reader_reads(plumb_reader *reader) {
    faulty_reader *self = (faulty_reader *)reader;
    pthread_mutex_lock(&self->lock);
    int64_t reads = self->reads;
    pthread_mutex_unlock(&self->lock);
    return reads;
}

int64_t faulty_reader_faults(plumb_reader *reader) {
    faulty_reader *self = (faulty_reader *)reader;
    pthread_mutex_lock(&self->lock);
    int64_t faults = self->faults;
    pthread_mutex_unlock(&self->lock);
    return faults;
}
