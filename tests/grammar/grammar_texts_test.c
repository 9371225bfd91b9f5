/* Schemas with texts that fit and texts that do not, cut into tokens in random ways. */
#include "grammar_test.h"

typedef struct texts {
    const char *schema;
    const char *fit[12], *misfit[14];
} texts;

static const texts tables[] = {
    {"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\"}, \"b\": {\"type\": \"integer\"}},"
     " \"required\": [\"a\"]}",
     {"{\"a\": \"x\"}", "{\"a\":\"x\",\"b\":12}", "{\n  \"a\": \"\\u00e9 é \\\"\",\n  \"b\": -3\n}", "{ \"a\": \"\" }"},
     {"{}", "{\"b\": 1}", "{\"b\": 1, \"a\": \"x\"}", "{\"a\": 1}", "{\"a\": \"x\", \"c\": 1}", "{\"a\": \"x\"} ",
      "{\"a\": \"x\", }", "{\"a\": \"x\", \"b\": 1.5}", " {\"a\": \"x\"}", "{\"a\": \"\\u0000\"}", "{\"a\": \"\\ud800\"}",
      "{\"a\": \"\n\"}", "{\"a\":  \"x\"}"}},
};

static void json_texts(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        json_t *schema = json_loads(tables[i].schema, JSON_DECODE_ANY, NULL);
        plumb_grammar *grammar = NULL;
        plumb_error err = {0};
        bool made = plumb__grammar_json_schema(schema, &grammar, &err) == PLUMB_OK;
        T_CHECK(made, "%s: %s: %s, expected %s", tables[i].schema, err.field, err.found, err.expected);
        for (int k = 0; made && k < 12 && tables[i].fit[k]; k++)
            for (int run = 0; run < 3; run++) {
                size_t at;
                bool taken = takes(&v, grammar, tables[i].fit[k], &random, &at);
                T_CHECK(taken, "%s refuses %s at %zu", tables[i].schema, tables[i].fit[k], at);
            }
        for (int k = 0; made && k < 14 && tables[i].misfit[k]; k++)
            T_CHECK(!takes(&v, grammar, tables[i].misfit[k], &random, NULL), "%s takes %s", tables[i].schema,
                    tables[i].misfit[k]);
        plumb__grammar_release(grammar);
        json_decref(schema);
    }
    close_vocabulary(&v);
}

T_MAIN({"json_texts", json_texts})
