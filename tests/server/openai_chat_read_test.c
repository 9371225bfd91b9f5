/* Bodies of chat completions: what generation becomes of them, what is refused and how the fault is named; and that
 * published conversations, sent as requests, give the published prompts. */
#include "server/api.h"
#include "text/chat_encode.h"

#include "api_fixture.h"
#include "generation_json.h"
#include "quotes.h"
#include "recorder.h"

#define HI "'messages':[{'role':'user','content':'hi'}]"
#define MESSAGES(...) "'messages':[" __VA_ARGS__ "]"
#define USER(text) "{'role':'user','content':'" text "'}"
#define FUNCTION "{'name':'f','description':'d','parameters':{'type':'object','properties':{'a':{'type':'integer'}}}}"
#define TOOL "{'type':'function','function':" FUNCTION "}"
#define TOOLS "'tools':[" TOOL "]"
/* The question with the tools where the published encoder looks for them. */
#define HI_TOOLS MESSAGES("{'role':'system','content':''," TOOLS "}," USER("hi"))
#define SCHEMA "{'type':'object','properties':{'a':{'type':'integer'}},'required':['a'],'additionalProperties':false}"
#define CALL "{'type':'function','function':{'name':'f','arguments':'{}'},'id':'x'}"

/* Members of the generation that differ from its defaults. */
static const struct {
    const char *body, *wanted;
} taken[] = {
    {"{" HI "}", "{" HI ",'thinking':1}"},
    {"{'model':'any','stream':null,'tools':null,'stop':null,'n':null,'seed':null,'user':'u','metadata':{'a':'b'},"
     "'store':true,'service_tier':'auto','unheard_of':[1]," HI "}",
     "{" HI ",'thinking':1}"},
    /* messages */
    {"{" MESSAGES("{'role':'developer','content':'d'}," USER("hi")) "}",
     "{" MESSAGES("{'role':'system','content':'d'}," USER("hi")) ",'thinking':1}"},
    {"{" MESSAGES("{'role':'system','content':'s'}") "}",
     "{" MESSAGES("{'role':'system','content':'s'}," USER("")) ",'thinking':1}"},
    {"{" MESSAGES(USER("a") ",{'role':'system','content':'s'}") "}",
     "{" MESSAGES(USER("a") ",{'role':'system','content':'s'}") ",'thinking':1}"},
    {"{" MESSAGES("{'role':'user','name':'n','content':[{'type':'text','text':'a','cache_control':{}},"
                  "{'type':'text','text':'b'}]}") "}",
     "{" MESSAGES("{'role':'user','content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}")
     ",'thinking':1}"},
    {"{" MESSAGES("{'role':'user','content':[]}") "}", "{" MESSAGES("{'role':'user','content':[]}") ",'thinking':1}"},
    {"{" MESSAGES(USER("a") ",{'role':'assistant','content':null,'refusal':null,'audio':null,'reasoning_content':'r',"
                  "'tool_calls':[{'id':'x','type':'function','index':0,'function':{'name':'f','arguments':'{}'}}]},"
                  "{'role':'tool','tool_call_id':'x','content':'1'}") "}",
     "{" MESSAGES(USER("a") ",{'role':'assistant','reasoning_content':'r','tool_calls':[" CALL "]},"
                  "{'role':'tool','tool_call_id':'x','content':'1'}") ",'thinking':1}"},
    {"{" MESSAGES(USER("a") ",{'role':'assistant','content':[{'type':'refusal','refusal':'no'}],'reasoning':'r',"
                  "'reasoning_content':null,'tool_calls':null}," USER("b")) "}",
     "{" MESSAGES(USER("a") ",{'role':'assistant','content':[{'type':'text','text':'no'}],'reasoning_content':'r'},"
                  USER("b")) ",'thinking':1}"},
    {"{" MESSAGES(USER("<｜User｜></think>")) "}", "{" MESSAGES(USER("<｜User｜></think>")) ",'thinking':1}"},
    {"{" MESSAGES("{'role':'user','content':'a\\u0000b'}") "}",
     "{" MESSAGES("{'role':'user','content':'a\\u0000b'}") ",'thinking':1}"},
    /* an answer to go on with is past its reasoning */
    {"{" MESSAGES(USER("a") ",{'role':'assistant','content':'b'}") ",'reasoning_effort':'high'}",
     "{" MESSAGES(USER("a") ",{'role':'assistant','content':'b','wo_eos':true}") "}"},
    /* reasoning */
    {"{'reasoning_effort':'none'," HI "}", "{" HI "}"},
    {"{'reasoning_effort':'minimal'," HI "}", "{" HI "}"},
    {"{'reasoning_effort':'low'," HI "}", "{" HI ",'thinking':1,'effort':50}"},
    {"{'reasoning_effort':'medium'," HI "}", "{" HI ",'thinking':1}"},
    {"{'reasoning_effort':'high'," HI "}", "{" HI ",'thinking':1}"},
    {"{'reasoning_effort':'xhigh'," HI "}", "{" HI ",'thinking':1,'effort':100}"},
    {"{'reasoning_effort':'max'," HI "}", "{" HI ",'thinking':1,'effort':100}"},
    {"{'reasoning_effort':37," HI "}", "{" HI ",'thinking':1,'effort':37}"},
    {"{'reasoning':{'effort':'low'}," HI "}", "{" HI ",'thinking':1,'effort':50}"},
    {"{'reasoning':{'enabled':false}," HI "}", "{" HI "}"},
    {"{'thinking':{'type':'disabled'}," HI "}", "{" HI "}"},
    {"{'thinking':{'type':'enabled'},'reasoning_effort':'none'," HI "}", "{" HI ",'thinking':1}"},
    {"{'thinking':{'type':'disabled'},'reasoning_effort':'max'," HI "}", "{" HI ",'effort':100}"},
    {"{'chat_template_kwargs':{'thinking':false}," HI "}", "{" HI "}"},
    {"{'chat_template_kwargs':{'enable_thinking':false,'reasoning_effort':'max'}," HI "}", "{" HI ",'effort':100}"},
    {"{'chat_template_kwargs':{'drop_thinking':false}," HI "}", "{" HI ",'thinking':1,'keep_reasoning':1}"},
    /* tools */
    {"{'tools':[]," HI "}", "{" HI ",'thinking':1}"},
    {"{" TOOLS "," HI "}", "{" HI_TOOLS ",'thinking':1,'tools_offered':1}"},
    {"{" TOOLS ",'tool_choice':'auto','parallel_tool_calls':false," MESSAGES("{'role':'system','content':'s'}," USER("hi"))
     "}",
     "{" MESSAGES("{'role':'system','content':'s'," TOOLS "}," USER("hi")) ",'thinking':1,'tools_offered':1}"},
    {"{'tools':[{'type':'function','function':{'name':'f','strict':true,'parameters':null}}]," HI "}",
     "{" MESSAGES("{'role':'system','content':'','tools':[{'type':'function','function':{'name':'f','strict':true,"
                  "'parameters':null}}]}," USER("hi")) ",'thinking':1,'tools_offered':1}"},
    {"{" TOOLS ",'tool_choice':'none'," HI "}", "{" HI_TOOLS ",'thinking':1,'bias':[[4087,'never']]}"},
    {"{'tool_choice':'none'," HI "}", "{" HI ",'thinking':1}"},
    {"{'tool_choice':'auto'," HI "}", "{" HI ",'thinking':1}"},
    {"{" TOOLS ",'tool_choice':'required'," HI "}", "{" HI_TOOLS ",'thinking':1,'tools_offered':1,'grammar':1}"},
    {"{" TOOLS ",'tool_choice':{'type':'function','function':{'name':'f'}}," HI "}",
     "{" HI_TOOLS ",'thinking':1,'tools_offered':1,'grammar':1}"},
    /* formats */
    {"{'response_format':{'type':'text'}," HI "}", "{" HI ",'thinking':1}"},
    {"{'response_format':{'type':'json_object'}," HI "}",
     "{" MESSAGES("{'role':'system','content':'','response_format':{'type':'object'}}," USER("hi"))
     ",'thinking':1,'grammar':1}"},
    {"{'response_format':{'type':'json_object','schema':" SCHEMA "}," HI "}",
     "{" MESSAGES("{'role':'system','content':'','response_format':" SCHEMA "}," USER("hi")) ",'thinking':1,'grammar':1}"},
    {"{'response_format':{'type':'json_schema','schema':" SCHEMA "}," HI "}",
     "{" MESSAGES("{'role':'system','content':'','response_format':" SCHEMA "}," USER("hi")) ",'thinking':1,'grammar':1}"},
    {"{'response_format':{'type':'json_schema','json_schema':{'name':'n','strict':true,'schema':" SCHEMA "}}," HI "}",
     "{" MESSAGES("{'role':'system','content':'','response_format':" SCHEMA "}," USER("hi"))
     ",'thinking':1,'grammar':1}"},
    {"{" TOOLS ",'tool_choice':'none','response_format':{'type':'json_object'}," HI "}",
     "{" MESSAGES("{'role':'system','content':''," TOOLS ",'response_format':{'type':'object'}}," USER("hi"))
     ",'thinking':1,'bias':[[4087,'never']],'grammar':1}"},
    {"{" TOOLS ",'response_format':{'type':'json_object'}," HI "}",
     "{" MESSAGES("{'role':'system','content':''," TOOLS ",'response_format':{'type':'object'}}," USER("hi"))
     ",'thinking':1,'tools_offered':1,'grammar':1}"},
    {"{" TOOLS ",'tool_choice':'required','response_format':{'type':'json_object'}," HI "}",
     "{" HI_TOOLS ",'thinking':1,'tools_offered':1,'grammar':1}"},
    /* sampling */
    {"{'temperature':0,'top_p':0.5,'min_p':0.25,'top_k':40,'seed':-1,'n':3," HI "}",
     "{" HI ",'thinking':1,'temperature':0.0,'top_p':0.5,'min_p':0.25,'top_k':40,'seed':-1,'runs':3}"},
    {"{'top_k':-1,'presence_penalty':0,'frequency_penalty':0.0," HI "}", "{" HI ",'thinking':1}"},
    {"{'logit_bias':{'0':-100,'4095':1.5}," HI "}", "{" HI ",'thinking':1,'bias':[[0,-100.0],[4095,1.5]]}"},
    {"{'stop':'a'," HI "}", "{" HI ",'thinking':1,'stop':['a']}"},
    {"{'stop':['a','\\n\\n']," HI "}", "{" HI ",'thinking':1,'stop':['a','\\n\\n']}"},
    {"{'max_tokens':5," HI "}", "{" HI ",'thinking':1,'most_tokens':5}"},
    {"{'max_tokens':-1,'max_completion_tokens':null," HI "}", "{" HI ",'thinking':1}"},
    /* What tools send switched off, and what changes nothing. */
    {"{'repetition_penalty':1,'repeat_penalty':1.0,'typical_p':1,'tfs':1,'top_a':0,'mirostat_mode':0,'dry_multiplier':0,"
     "'xtc_probability':0,'guidance_scale':1,'min_tokens':0,'ignore_eos':false,'ban_eos_token':false,'grammar':'',"
     "'stop_token_ids':[],'json_schema':{},'audio':null,'modalities':['text'],'functions':[]," HI "}",
     "{" HI ",'thinking':1}"},
    {"{'user':'u','store':true,'metadata':{'a':'b'},'service_tier':'auto','prompt_cache_key':'k','safety_identifier':'s',"
     "'prediction':{'type':'content','content':'x'},'verbosity':'low','stream_options':null,'logit_bias':{},'n':1,"
     "'seed':null,'tool_choice':null," HI "}", "{" HI ",'thinking':1}"},
    {"{" MESSAGES("{'role':'developer','name':'d','content':[{'type':'text','text':'s','cache_control':{'type':'ephemeral'}}]},"
                  USER("q") ",{'role':'assistant','content':'a','function_call':null,'audio':null,'refusal':null,"
                  "'annotations':[],'tool_calls':null}," USER("r")) "}",
     "{" MESSAGES("{'role':'system','content':[{'type':'text','text':'s'}]}," USER("q")
                  ",{'role':'assistant','content':'a'}," USER("r")) ",'thinking':1}"},
    {"{'max_completion_tokens':6,'max_tokens':5," HI "}", "{" HI ",'thinking':1,'most_tokens':6}"},
    {"{'logprobs':true," HI "}", "{" HI ",'thinking':1,'logprobs':1}"},
    {"{'logprobs':true,'top_logprobs':20," HI "}", "{" HI ",'thinking':1,'logprobs':1,'top_logprobs':20}"},
    {"{'logprobs':false,'top_logprobs':0," HI "}", "{" HI ",'thinking':1}"},
    {"{'stream':true,'stream_options':{'include_usage':true}," HI "}", "{" HI ",'thinking':1}"},
};

static const struct {
    const char *body, *param, *message;
} refused[] = {
    {"", "", "not JSON"},
    {"[]", "", "not a JSON object"},
    {"{}", "messages", "missing"},
    {"{'messages':{}}", "messages", "expected an array"},
    {"{'messages':[]}", "messages", "empty"},
    {"{'messages':['hi']}", "messages[0]", "expected an object"},
    {"{" MESSAGES("{'content':'a'}") "}", "messages[0].role", "missing"},
    {"{" MESSAGES("{'role':'function','content':'a'}") "}", "messages[0].role", "expected one of"},
    {"{" MESSAGES("{'role':'user'}") "}", "messages[0].content", "missing"},
    {"{" MESSAGES("{'role':'tool','tool_call_id':'x','content':null}") "}", "messages[0].content", "missing"},
    {"{" MESSAGES("{'role':'user','content':7}") "}", "messages[0].content", "neither a string nor an array"},
    {"{" MESSAGES("{'role':'user','content':['a']}") "}", "messages[0].content[0]", "expected an object"},
    {"{" MESSAGES("{'role':'user','content':[{'text':'a'}]}") "}", "messages[0].content[0].type", "missing"},
    {"{" MESSAGES("{'role':'user','content':[{'type':'text'}]}") "}", "messages[0].content[0].text", "missing"},
    {"{" MESSAGES("{'role':'user','content':[{'type':'text','text':1}]}") "}", "messages[0].content[0].text",
     "not a string"},
    {"{" MESSAGES("{'role':'user','content':[{'type':'hologram'}]}") "}", "messages[0].content[0].type", "hologram"},
    {"{" MESSAGES("{'role':'user','content':[{'type':'text','text':'a'},{'type':'image_url','image_url':{}}]}") "}",
     "messages[0].content[1].type", "image input is not supported yet"},
    {"{" MESSAGES("{'role':'tool','tool_call_id':'x','content':[{'type':'image'}]}") "}", "messages[0].content[0].type",
     "image input is not supported yet"},
    {"{" MESSAGES("{'role':'user','content':[{'type':'input_audio'}]}") "}", "messages[0].content[0].type",
     "audio input is not supported yet"},
    {"{" MESSAGES(USER("a") ",{'role':'tool','content':'x'}") "}", "messages[1].tool_call_id", "missing"},
    {"{" MESSAGES("{'role':'assistant','content':'','reasoning_content':1}") "}", "messages[0].reasoning_content",
     "not a string"},
    {"{" MESSAGES("{'role':'assistant','tool_calls':{}}") "}", "messages[0].tool_calls", "expected an array"},
    {"{" MESSAGES("{'role':'assistant','tool_calls':[{}]}") "}", "messages[0].tool_calls[0].function", "missing"},
    {"{" MESSAGES("{'role':'assistant','tool_calls':[{'type':'custom'}]}") "}", "messages[0].tool_calls[0].type",
     "expected 'function'"},
    {"{" MESSAGES("{'role':'assistant','tool_calls':[{'id':1}]}") "}", "messages[0].tool_calls[0].id", "not a string"},
    {"{" MESSAGES("{'role':'assistant','tool_calls':[{'function':{'name':'f'}}]}") "}",
     "messages[0].tool_calls[0].function.arguments", "neither a string nor an object"},
    {"{" MESSAGES("{'role':'assistant','tool_calls':[{'function':{'name':'f','arguments':[]}}]}") "}",
     "messages[0].tool_calls[0].function.arguments", "neither a string nor an object"},
    {"{" MESSAGES("{'role':'assistant','tool_calls':[{'function':{'arguments':'{}'}}]}") "}",
     "messages[0].tool_calls[0].function.name", "missing"},
    {"{" MESSAGES(USER("a") ",{'role':'assistant','tool_calls':[" CALL "]}") "}", "messages", "results are missing"},
    {"{'reasoning_effort':'some'," HI "}", "reasoning_effort", "'some'"},
    {"{'reasoning_effort':0," HI "}", "reasoning_effort", "expected 1 to 100"},
    {"{'reasoning_effort':101," HI "}", "reasoning_effort", "expected 1 to 100"},
    {"{'reasoning':{'effort':[]}," HI "}", "reasoning.effort", "expected a string"},
    {"{'reasoning':true," HI "}", "reasoning", "expected an object"},
    {"{'thinking':{'type':'maybe'}," HI "}", "thinking.type", "disabled, enabled"},
    {"{'chat_template_kwargs':{'thinking':1}," HI "}", "chat_template_kwargs.thinking", "expected a boolean"},
    {"{'tools':{}," HI "}", "tools", "expected an array"},
    {"{'tools':[1]," HI "}", "tools[0]", "expected an object"},
    {"{'tools':[{'type':'custom','custom':{'name':'c'}}]," HI "}", "tools[0].type", "only functions"},
    {"{'tools':[{'type':'function'}]," HI "}", "tools[0].function", "missing"},
    {"{'tools':[{'type':'function','function':{}}]," HI "}", "tools[0].function.name", "missing"},
    {"{'tools':[{'type':'function','function':{'name':'a b'}}]," HI "}", "tools[0].function.name", "letters, digits"},
    {"{'tools':[{'type':'function','function':{'name':''}}]," HI "}", "tools[0].function.name", "letters, digits"},
    {"{'tools':[{'type':'function','function':{'name':'f','parameters':[]}}]," HI "}", "tools[0].function.parameters",
     "expected an object"},
    {"{'tools':[{'type':'function','function':{'name':'f','description':1}}]," HI "}", "tools[0].function.description",
     "expected a string"},
    {"{" TOOLS ",'tool_choice':'some'," HI "}", "tool_choice", "auto, none, required"},
    {"{" TOOLS ",'tool_choice':7," HI "}", "tool_choice", "expected a string"},
    {"{'tool_choice':'required'," HI "}", "tool_choice", "there are no tools"},
    {"{" TOOLS ",'tool_choice':{'type':'allowed_tools'}," HI "}", "tool_choice.type", "expected 'function'"},
    {"{" TOOLS ",'tool_choice':{'type':'function'}," HI "}", "tool_choice.function", "missing"},
    {"{" TOOLS ",'tool_choice':{'type':'function','function':{}}," HI "}", "tool_choice.function.name", "missing"},
    {"{" TOOLS ",'tool_choice':{'type':'function','function':{'name':'g'}}," HI "}", "tool_choice",
     "not among the tools"},
    {"{" TOOLS ",'parallel_tool_calls':'no'," HI "}", "parallel_tool_calls", "expected a boolean"},
    {"{'functions':[" FUNCTION "]," HI "}", "functions", "use 'tools'"},
    {"{'response_format':'json'," HI "}", "response_format", "expected an object"},
    {"{'response_format':{'type':'xml'}," HI "}", "response_format.type", "text, json_object, json_schema"},
    {"{'response_format':{'type':'json_schema'}," HI "}", "response_format", "schema' is not an object"},
    {"{'response_format':{'type':'json_object','schema':'x'}," HI "}", "response_format", "schema' is not an object"},
    {"{'response_format':{'type':'json_schema','json_schema':{'name':'n'}}," HI "}", "response_format",
     "schema' is not an object"},
    {"{'response_format':{'type':'json_schema','json_schema':{'schema':{'type':'number','multipleOf':3.5}}}," HI "}",
     "response_format.json_schema.schema", "not supported"},
    {"{'response_format':{'type':'json_schema','json_schema':{'schema':{'type':'nothing'}}}," HI "}",
     "response_format.json_schema.schema", "is wrong"},
    {"{'temperature':2.5," HI "}", "temperature", "expected 0 to 2"},
    {"{'temperature':'hot'," HI "}", "temperature", "expected a number"},
    {"{'top_p':-0.5," HI "}", "top_p", "expected 0 to 1"},
    {"{'min_p':2," HI "}", "min_p", "expected 0 to 1"},
    {"{'top_k':-2," HI "}", "top_k", "expected -1 to"},
    {"{'top_k':0.5," HI "}", "top_k", "whole number"},
    {"{'seed':'x'," HI "}", "seed", "whole number"},
    {"{'n':0," HI "}", "n", "expected 1 to 4"},
    {"{'n':5," HI "}", "n", "expected 1 to 4"},
    {"{'presence_penalty':0.5," HI "}", "presence_penalty", "not supported, except 0"},
    {"{'repeat_penalty':0," HI "}", "repeat_penalty", "not supported, except 1"},
    {"{'audio':{}," HI "}", "audio", "not supported"},
    {"{'web_search_options':{}," HI "}", "web_search_options", "not supported"},
    {"{'guided_json':{}," HI "}", "guided_json", "not supported"},
    {"{'frequency_penalty':-3," HI "}", "frequency_penalty", "not supported, except 0"},
    {"{'repetition_penalty':1.1," HI "}", "repetition_penalty", "not supported, except 1"},
    {"{'mirostat':2," HI "}", "mirostat", "not supported, except 0"},
    {"{'typical_p':'1'," HI "}", "typical_p", "is a string, expected a number"},
    {"{'grammar':'root ::= x'," HI "}", "grammar", "not supported"},
    {"{'guided_json':{'type':'object'}," HI "}", "guided_json", "not supported"},
    {"{'stop_token_ids':[1]," HI "}", "stop_token_ids", "not supported"},
    {"{'ignore_eos':true," HI "}", "ignore_eos", "not supported"},
    {"{'web_search_options':{'search_context_size':'low'}," HI "}", "web_search_options", "not supported"},
    {"{'modalities':['text','audio']," HI "}", "modalities", "other than 'text'"},
    {"{'modalities':'text'," HI "}", "modalities", "expected an array"},
    {"{'logit_bias':[]," HI "}", "logit_bias", "expected an object"},
    {"{'logit_bias':{'4096':1}," HI "}", "logit_bias", "not a token id below 4096"},
    {"{'logit_bias':{'-1':1}," HI "}", "logit_bias", "not a token id"},
    {"{'logit_bias':{'01':1}," HI "}", "logit_bias", "not a token id"},
    {"{'logit_bias':{'':1}," HI "}", "logit_bias", "not a token id"},
    {"{'logit_bias':{'99999999999999999999':1}," HI "}", "logit_bias", "not a token id"},
    {"{'logit_bias':{'1':101}," HI "}", "logit_bias.1", "expected -100 to 100"},
    {"{'logit_bias':{'1':'x'}," HI "}", "logit_bias.1", "expected a number"},
    {"{'stop':['1','2','3','4','5','6','7','8','9','10','11','12','13','14','15','16','17']," HI "}", "stop",
     "at most 16"},
    {"{'stop':''," HI "}", "stop", "empty string"},
    {"{'max_tokens':0," HI "}", "max_tokens", "leaves no room"},
    {"{'max_completion_tokens':0," HI "}", "max_completion_tokens", "leaves no room"},
    {"{'max_tokens':-2," HI "}", "max_tokens", "expected -1 to"},
    {"{" MESSAGES(USER("q") ",{'role':'assistant','content':null,'function_call':{'name':'f','arguments':'{}'}},"
                  USER("r")) "}", "messages[1].function_call", "use 'tool_calls'"},
    {"{" MESSAGES(USER("q") ",{'role':'assistant','audio':{'id':'a'}}," USER("r")) "}", "messages[1].audio",
     "not supported"},
    {"{" MESSAGES(USER("q") ",{'role':'function','name':'f','content':'1'}") "}", "messages[1].role", "expected one of"},
    {"{'max_completion_tokens':-2," HI "}", "max_completion_tokens", "expected -1 to"},
    {"{'logprobs':1," HI "}", "logprobs", "expected a boolean"},
    {"{'logprobs':true,'top_logprobs':21," HI "}", "top_logprobs", "expected 0 to 20"},
    {"{'top_logprobs':1," HI "}", "top_logprobs", "needs 'logprobs'"},
    {"{'stream':'yes'," HI "}", "stream", "expected a boolean"},
    {"{'stream_options':{'include_usage':1}," HI "}", "stream_options.include_usage", "expected a boolean"},
    {"{'model':7," HI "}", "model", "expected a string"},
};

static plumb_text *text;
static plumb_sampling sampling;
static plumb_api_context context;

static plumb_status read_body(const char *body, plumb_api_request **request, plumb_generation **generation,
                              plumb_api_error *error) {
    *request = NULL;
    *generation = NULL;
    memset(error, 'x', sizeof *error); /* read must not rely on it */
    return plumb__openai_chat.read(&context, NULL, body, strlen(body), request, generation, error);
}

static plumb_chat_options options_of(const plumb_generation *g) {
    return (plumb_chat_options){.thinking = g->thinking, .effort = g->effort, .keep_reasoning = g->keep_reasoning};
}

static void bodies_taken(void) {
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        char *body = quoted(taken[i].body), *wanted = quoted(taken[i].wanted);
        plumb_api_request *request;
        plumb_generation *g;
        plumb_api_error error;
        plumb_error err;
        plumb_status status = read_body(body, &request, &g, &error);
        T_CHECK(status == PLUMB_OK, "%s: '%s' %s", body, error.param, error.message);
        if (status == PLUMB_OK) {
            json_t *found = describe_generation(g);
            check_json(body, found, wanted);
            json_decref(found);
            plumb_tokens tokens = {0};
            plumb_chat_options options = options_of(g);
            T_CHECK(plumb_chat_encode(text, g->messages, &options, &tokens, &err) == PLUMB_OK, "%s: encoding", body);
            plumb_tokens_free(&tokens);
        }
        plumb__openai_chat.destroy(request);
        plumb__generation_destroy(g);
        free(body);
        free(wanted);
    }
}

static void bodies_refused(void) {
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char *body = quoted(refused[i].body);
        plumb_api_request *request;
        plumb_generation *g;
        plumb_api_error error;
        plumb_status status = read_body(body, &request, &g, &error);
        T_CHECK(status != PLUMB_OK && !request && !g, "%s is taken", body);
        T_CHECK(error.refusal == PLUMB_REFUSAL_BAD_REQUEST, "%s: refusal %d", body, error.refusal);
        T_CHECK(strcmp(error.param, refused[i].param) == 0, "%s: field '%s'", body, error.param);
        T_CHECK(strstr(error.message, refused[i].message), "%s: %s", body, error.message);
        if (status == PLUMB_OK) {
            plumb__openai_chat.destroy(request);
            plumb__generation_destroy(g);
        }
        free(body);
    }
}

/* What the server is started with applies where the request says nothing. */
static void defaults(void) {
    const plumb_sampling greedy = {.top_p = 1.0f, .top_k = 5};
    plumb_api_context quiet = context;
    quiet.sampling = &greedy;
    quiet.thinking = false;
    quiet.effort = 10;
    char *body = quoted("{" HI "}"), *wanted = quoted("{" HI ",'temperature':0.0,'top_p':1.0,'top_k':5,'effort':10}");
    plumb_api_request *request;
    plumb_generation *g;
    plumb_api_error error;
    plumb_status status = plumb__openai_chat.read(&quiet, NULL, body, strlen(body), &request, &g, &error);
    T_CHECK(status == PLUMB_OK, "%s", error.message);
    if (status == PLUMB_OK) {
        json_t *found = describe_generation(g);
        check_json(body, found, wanted);
        json_decref(found);
        plumb__openai_chat.destroy(request);
        plumb__generation_destroy(g);
    }
    free(body);
    free(wanted);
}

/* ---- Published conversations, in the words of a client ---- */

/* A client has tools and schemas beside the messages; whoever publishes has them inside. */
static json_t *as_request(const json_t *example) {
    const json_t *options = json_object_get(example, "options");
    json_t *request = json_pack("{s:O}", "messages", json_object_get(example, "messages")), *message;
    bool thinking = json_is_true(json_object_get(options, "thinking"));
    json_int_t effort = json_integer_value(json_object_get(options, "effort"));
    size_t i;
    json_array_foreach(json_object_get(request, "messages"), i, message) {
        json_t *tools = json_object_get(message, "tools"), *schema = json_object_get(message, "response_format");
        if (tools) json_object_set(request, "tools", tools);
        if (schema)
            json_object_set_new(request, "response_format",
                                json_pack("{s:s, s:{s:O}}", "type", "json_schema", "json_schema", "schema", schema));
        json_object_del(message, "tools");
        json_object_del(message, "response_format");
        json_object_del(message, "wo_eos"); /* an answer at the end is meant to be gone on with */
    }
    json_object_set_new(request, "chat_template_kwargs",
                        json_pack("{s:b, s:b}", "thinking", thinking, "drop_thinking",
                                  !json_is_true(json_object_get(options, "keep_reasoning"))));
    if (effort > 0) json_object_set_new(request, "reasoning_effort", json_integer(effort));
    return request;
}

static void check_prompt(const char *name, const plumb_generation *g, const char *wanted) {
    plumb__chat_items items = {0};
    plumb__buffer printed = {0};
    plumb_error err;
    plumb_chat_options options = options_of(g);
    plumb_status status = plumb__chat_render(g->messages, strlen(g->messages), &options, &items, &err);
    if (status == PLUMB_OK) plumb__chat_items_print(&items, &printed);
    T_CHECK((size_t)printed.size == strlen(wanted) && memcmp(printed.bytes, wanted, strlen(wanted)) == 0,
            "%s: %.*s\nnot\n%s", name, (int)printed.size, printed.bytes, wanted);
    plumb__chat_items_free(&items);
    plumb__buffer_free(&printed);
}

/* Pictures, quick tasks and reminders. */
static bool is_beyond_the_api(const char *name) {
    return !strcmp(name, "E9") || !strcmp(name, "E11") || !strcmp(name, "E12") || !strcmp(name, "E14");
}

static void published_prompts(void) {
    json_t *file = json_load_file(TEST_DATA "/chat/examples.json", 0, NULL), *example;
    int checked = 0;
    size_t i;
    json_array_foreach(json_object_get(file, "examples"), i, example) {
        const char *name = json_string_value(json_object_get(example, "name"));
        if (is_beyond_the_api(name)) continue;
        json_t *sent = as_request(example);
        char *body = json_dumps(sent, JSON_COMPACT);
        plumb_api_request *request;
        plumb_generation *g;
        plumb_api_error error;
        plumb_status status = read_body(body, &request, &g, &error);
        T_CHECK(status == PLUMB_OK, "%s: '%s' %s", name, error.param, error.message);
        if (status == PLUMB_OK) {
            check_prompt(name, g, json_string_value(json_object_get(example, "prompt")));
            plumb__openai_chat.destroy(request);
            plumb__generation_destroy(g);
        }
        free(body);
        json_decref(sent);
        checked++;
    }
    T_CHECK(checked == 11, "%d examples", checked);
    json_decref(file);
}

/* Numbers of schemas stand in the prompt as Python prints them, whatever the client's spelling. */
static void numbers_of_schemas(void) {
    char *body = quoted("{" HI ",'thinking':{'type':'disabled'},'tools':[{'type':'function','function':{'name':'f',"
                        "'parameters':{'a':0.1,'b':1e-7,'c':1.0,'d':9007199254740993,'e':[1.5e300,-0.0]}}}]}");
    char *wanted = quoted("{'name': 'f', 'parameters': {'a': 0.1, 'b': 1e-07, 'c': 1.0, 'd': 9007199254740993, "
                          "'e': [1.5e+300, -0.0]}}");
    plumb_api_request *request;
    plumb_generation *g;
    plumb_api_error error;
    plumb__chat_items items = {0};
    plumb__buffer printed = {0};
    plumb_error err;
    T_CHECK(read_body(body, &request, &g, &error) == PLUMB_OK, "%s", error.message);
    plumb_chat_options options = options_of(g);
    T_CHECK(plumb__chat_render(g->messages, strlen(g->messages), &options, &items, &err) == PLUMB_OK, "");
    plumb__chat_items_print(&items, &printed);
    plumb__buffer_append(&printed, "", 1);
    T_CHECK(strstr(printed.bytes, wanted), "%s", printed.bytes);
    plumb__chat_items_free(&items);
    plumb__buffer_free(&printed);
    plumb__openai_chat.destroy(request);
    plumb__generation_destroy(g);
    free(body);
    free(wanted);
}

/* 4,096 calls and their results: twice as many take about twice the work, which a quadratic reader would not
 * finish in the time of a test. */
static void many_calls(void) {
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "q");
    for (int i = 0; i < 4096; i++) {
        json_t *id = json_sprintf("call_%d", i);
        json_array_append_new(messages, json_pack("{s:s, s:n, s:[{s:O, s:s, s:{s:s, s:s}}]}", "role", "assistant",
                                                  "content", "tool_calls", "id", id, "type", "function", "function",
                                                  "name", "f", "arguments", "{\"a\": 1}"));
        json_array_append_new(messages, json_pack("{s:s, s:o, s:s}", "role", "tool", "tool_call_id", id, "content", "r"));
    }
    json_t *sent = json_pack("{s:o}", "messages", messages);
    char *body = json_dumps(sent, JSON_COMPACT);
    plumb_api_request *request;
    plumb_generation *g;
    plumb_api_error error;
    T_CHECK(read_body(body, &request, &g, &error) == PLUMB_OK, "%s", error.message);
    json_t *found = json_loads(g->messages, 0, NULL);
    T_CHECK(json_array_size(found) == 8193, "%zu", json_array_size(found));
    json_decref(found);
    plumb__openai_chat.destroy(request);
    plumb__generation_destroy(g);
    free(body);
    json_decref(sent);
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"bodies_taken", bodies_taken},
                                   {"bodies_refused", bodies_refused},
                                   {"defaults", defaults},
                                   {"published_prompts", published_prompts},
                                   {"numbers_of_schemas", numbers_of_schemas},
                                   {"many_calls", many_calls}};
    context = fixture_context(&text, &sampling);
    int status = t_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
    plumb_text_close(text);
    return status;
}
