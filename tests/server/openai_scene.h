/* One request of an OpenAI API from its body to its last event, and its answer without what every answer has. */
#ifndef PLUMB_TESTS_SERVER_OPENAI_SCENE_H
#define PLUMB_TESTS_SERVER_OPENAI_SCENE_H

#include "api_fixture.h"
#include "quotes.h"
#include "recorder.h"
#include "script.h"

/* Reads the body and plays the script.  A request that is refused answers so. */
static inline recorder scene_play(const plumb_api *api, const plumb_api_context *context, const char *body,
                                  const char *script) {
    recorder r = RECORDER;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    if (api->read(context, NULL, body, strlen(body), &request, &g, &error) == PLUMB_OK)
        script_play(api, request, script, &r.response);
    else
        api->refuse(&error, &r.response);
    T_CHECK(r.begins == 1 && r.ends == 1, "%s, %s: begun %d times, ended %d", body, script, r.begins, r.ends);
    plumb__generation_destroy(g);
    api->destroy(request);
    return r;
}

static inline void scene_check_member(json_t *object, const char *key, const char *wanted) {
    const char *found = json_string_value(json_object_get(object, key));
    T_CHECK(found && strcmp(found, wanted) == 0, "'%s' is %s", key, found ? found : "missing");
    json_object_del(object, key);
}

/* Checks and takes away what is the same in each answer, and each chunk of it. */
static inline void scene_strip(json_t *object, const char *id, const char *kind) {
    char fingerprint[80];
    snprintf(fingerprint, sizeof fingerprint, "plumb-" PLUMB_VERSION "-arithmetic-%d", PLUMB_ARITHMETIC_REVISION);
    scene_check_member(object, "id", id);
    scene_check_member(object, "object", kind);
    scene_check_member(object, "model", "demo");
    scene_check_member(object, "system_fingerprint", fingerprint);
    T_CHECK(json_integer_value(json_object_get(object, "created")) == 1700000000, "");
    json_object_del(object, "created");
}

/* A chunk in fewer words: its one choice, without the members that are null and an index of 0. */
static inline json_t *scene_choice(const json_t *chunk, bool with_usage) {
    json_t *choices = json_object_get(chunk, "choices"), *choice = json_array_get(choices, 0);
    T_CHECK(json_is_null(json_object_get(chunk, "usage")) == with_usage, "usage of a chunk");
    T_CHECK(json_array_size(choices) == 1 && json_object_get(choice, "logprobs") &&
                json_object_get(choice, "finish_reason"), "a chunk lacks members");
    if (json_is_null(json_object_get(choice, "logprobs"))) json_object_del(choice, "logprobs");
    if (json_is_null(json_object_get(choice, "finish_reason"))) json_object_del(choice, "finish_reason");
    if (json_integer_value(json_object_get(choice, "index")) == 0) json_object_del(choice, "index");
    return json_incref(choice);
}

/* A stream's events; chunks as scene_choice has them, all others as they are. */
static inline json_t *scene_stream(recorder *r, const char *id, const char *kind, bool with_usage) {
    json_t *events = recorder_events(r), *event, *list = json_array();
    size_t i;
    json_array_foreach(events, i, event) {
        bool chunk = json_object_get(event, "choices") != NULL;
        if (chunk) scene_strip(event, id, kind);
        json_array_append_new(list, chunk && json_array_size(json_object_get(event, "choices")) > 0
                                        ? scene_choice(event, with_usage)
                                        : json_incref(event));
    }
    json_decref(events);
    return list;
}

#endif
