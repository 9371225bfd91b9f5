/* The files of the page as the program has them: those of src/server/web, byte for byte; types, tags, headers. */
#include "server/page.h"

#include "t.h"

#include <stdio.h>
#include <stdlib.h>

static void files_are_those_of_the_folder(void) {
    int pages = 0;
    for (int i = 0; i < plumb__page_file_count; i++) {
        const plumb_page_file *file = &plumb__page_files[i];
        char name[512];
        bool index = !strcmp(file->path, "/");
        pages += index;
        T_CHECK(index || !strncmp(file->path, "/page/", 6), "(%s)", file->path);
        snprintf(name, sizeof name, "%s/src/server/web/%s", PROJECT_DIR, index ? "index.html" : file->path + 6);
        FILE *stream = fopen(name, "rb");
        T_CHECK(stream, "(%s)", name);
        if (!stream) continue;
        unsigned char *bytes = malloc(file->size + 1);
        size_t size = bytes ? fread(bytes, 1, file->size + 1, stream) : 0;
        T_CHECK(size == file->size && bytes && !memcmp(bytes, file->bytes, size), "(%s)", name);
        free(bytes);
        fclose(stream);
        T_CHECK(plumb__page_find(file->path) == file, "(%s)", file->path);
    }
    T_CHECK(pages == 1, "(%d)", pages);
}

static void nothing_else_is_found(void) {
    static const char *const paths[] = {"", "/page", "/page/", "/index.html", "/page/index.html", "page/app.js",
                                        "/page/app.js/", "/page/../page/app.js", "//", "/page/APP.JS"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        T_CHECK(plumb__page_find(paths[i]) == NULL, "(%s)", paths[i]);
}

static void content_types(void) {
    static const char *const types[][2] = {{"/", "text/html; charset=utf-8"},
                                           {"/page/app.js", "text/javascript; charset=utf-8"},
                                           {"/page/style.css", "text/css; charset=utf-8"},
                                           {"/page/icon.svg", "image/svg+xml"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const plumb_page_file *file = plumb__page_find(types[i][0]);
        T_CHECK(file && !strcmp(file->content_type, types[i][1]), "(%s)", types[i][0]);
    }
}

static void tags_tell_files_apart(void) {
    for (int i = 0; i < plumb__page_file_count; i++) {
        const char *tag = plumb__page_files[i].etag;
        T_CHECK(strlen(tag) == 34 && tag[0] == '"' && strspn(tag + 1, "0123456789abcdef") == 32 && tag[33] == '"',
                "(%s)", tag);
        for (int j = 0; j < i; j++) T_CHECK(strcmp(tag, plumb__page_files[j].etag) != 0, "(%s)", tag);
    }
}

static void if_none_match(void) {
    static const unsigned char bytes[] = "x";
    static const plumb_page_file file = {"/", "text/html", "\"abc\"", bytes, 1};
    static const struct {
        const char *value;
        bool unchanged;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"\"abc\"", true},
        {"W/\"abc\"", true},
        {" \"x\" , \"abc\"", true},
        {"\"x\",W/\"y\",\"abc\"", true},
        {"*", true},
        {"\"ab\"", false},
        {"\"abcd\"", false},
        {"abc", false},
        {"\"x", false},
        {"\"x\" \"y\"", false},
        {"\"x\", \"y,\\\"abc\"", false},
        {"w/\"abc\"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        T_CHECK(plumb__page_unchanged(&file, cases[i].value) == cases[i].unchanged, "(%s)",
                cases[i].value ? cases[i].value : "none");
}

static const char *header(const char *name) {
    for (const plumb_page_header *h = plumb__page_headers; h->name; h++) {
        if (!strcmp(h->name, name)) return h->value;
    }
    return "";
}

/* What the policy must say is what a browser enforces; here: that no part was lost. */
static void headers(void) {
    static const char *const parts[] = {
        "default-src 'none';", "script-src 'self';", "style-src 'self';", "connect-src 'self';",
        "img-src 'self' data:;", "font-src 'self';", "base-uri 'none';", "form-action 'none';",
        "frame-ancestors 'none';", "require-trusted-types-for 'script';", "trusted-types 'none'"};
    const char *policy = header("Content-Security-Policy");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) T_CHECK(strstr(policy, parts[i]), "(%s)", parts[i]);
    T_CHECK(!strstr(policy, "unsafe") && !strchr(policy, '*') && !strchr(policy, '\n'), "(%s)", policy);
    static const char *const others[][2] = {
        {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"}, {"Cache-Control", "no-cache"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        T_CHECK(!strcmp(header(others[i][0]), others[i][1]), "(%s)", others[i][0]);
}

/* The page fetches nothing from elsewhere and makes no HTML from text; only SVG's namespace is an address. */
static void files_name_no_other_server(void) {
    static const char *const words[] = {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                                        "new Function", "DOMParser", "srcdoc", "style=\"", "onclick=\"", "//cdn"};
    for (int i = 0; i < plumb__page_file_count; i++) {
        const plumb_page_file *file = &plumb__page_files[i];
        char *text = malloc(file->size + 1);
        T_CHECK(text, "(no memory)");
        if (!text) return;
        memcpy(text, file->bytes, file->size);
        text[file->size] = '\0';
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
            T_CHECK(!strstr(text, words[w]), "(%s has %s)", file->path, words[w]);
        for (const char *at = text; (at = strstr(at, "http")); at++)
            T_CHECK(strncmp(at, "http://", 7) != 0 || !strncmp(at, "http://www.w3.org/2000/svg", 26), "(%s)", file->path);
        free(text);
    }
}

int main(int argc, char **argv) {
    static const t_test tests[] = {
        {"files_are_those_of_the_folder", files_are_those_of_the_folder},
        {"nothing_else_is_found", nothing_else_is_found},
        {"content_types", content_types},
        {"tags_tell_files_apart", tags_tell_files_apart},
        {"if_none_match", if_none_match},
        {"headers", headers},
        {"files_name_no_other_server", files_name_no_other_server},
    };
    return t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
