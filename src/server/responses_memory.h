/* Conversations that can be continued by the id of a response.
 *
 * A turn is what one request added: its items and the answer to them.  It points at the turn before it, so
 * that a long conversation is held once, not once for each of its responses.  The memory is bounded; the turn
 * that was used least recently is forgotten first, though what a remembered one continues stays.
 *
 * Ids that this memory made carry a mark, by which those that are forgotten, or were never to be kept, differ
 * from those that somebody else made: nothing is kept for that.  One thread. */
#ifndef PLUMB_SERVER_RESPONSES_MEMORY_H
#define PLUMB_SERVER_RESPONSES_MEMORY_H

#include "plumb.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { PLUMB_RESPONSE_ID_SIZE = 64 };

typedef struct plumb_turn plumb_turn;
typedef struct plumb_responses_memory plumb_responses_memory;

/* At most so many turns, of so many bytes of JSON. */
PLUMB_MUST_CHECK plumb_status plumb__responses_memory_create(int64_t most_turns, int64_t most_bytes,
                                                             plumb_responses_memory **memory, plumb_error *err);
/* All turns that were found must have been released. */
void plumb__responses_memory_destroy(plumb_responses_memory *memory);

/* `new_id` is plumb_api_context's; to its random characters the mark is added. */
void plumb__responses_memory_new_id(plumb_responses_memory *memory, void (*new_id)(void *, const char *, char *),
                                    void *user, char id[PLUMB_RESPONSE_ID_SIZE]);
bool plumb__responses_memory_made(const plumb_responses_memory *memory, const char *id);

/* The turn of this id, retained, which counts as its use; NULL: it is not (or no longer) here. */
plumb_turn *plumb__responses_memory_find(plumb_responses_memory *memory, const char *id);
/* Keeps `messages`, an array of message objects, as what follows `before` (NULL: nothing), and the items of the
 * response, `output`.  False: it is too large, or there is no memory. */
bool plumb__responses_memory_keep(plumb_responses_memory *memory, const char *id, plumb_turn *before,
                                  const json_t *messages, const json_t *output);

/* Items are named after their response, "msg_..._2" being its third: nothing else is kept to find them by. */
void plumb__responses_memory_item_id(const char *response, const char *prefix, size_t place,
                                     char id[PLUMB_RESPONSE_ID_SIZE]);
/* All items of the response that has this one, which counts as its use; the caller's, NULL: it is not (or no longer)
 * here.  *made: it was made here.  False: no memory. */
bool plumb__responses_memory_find_items(plumb_responses_memory *memory, const char *item, json_t **items, bool *made);
/* Messages of the conversation up to and with this turn; NULL: no memory. */
json_t *plumb__turn_messages(const plumb_turn *turn);
void plumb__turn_release(plumb_responses_memory *memory, plumb_turn *turn); /* NULL is fine */

int64_t plumb__responses_memory_turns(const plumb_responses_memory *memory); /* remembered by id */
int64_t plumb__responses_memory_bytes(const plumb_responses_memory *memory); /* of all that are held */

#endif
