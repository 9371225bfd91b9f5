/* The four small checkpoints against the published list of SHA-256 digests.  They stay in the build
 * folder for the tests that run a model. */
#include <dirent.h>
#include <openssl/evp.h>

#include "synth/synth.h"
#include "t.h"

static bool digest_of(const char *path, char hex[65]) {
    FILE *file = fopen(path, "rb");
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!file || !context || !EVP_DigestInit_ex(context, EVP_sha256(), NULL)) return false;
    unsigned char buffer[1 << 16], digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        EVP_DigestUpdate(context, buffer, n);
    EVP_DigestFinal_ex(context, digest, &size);
    EVP_MD_CTX_free(context);
    fclose(file);
    for (unsigned i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return size == 32;
}

static int files_in(const char *folder) {
    int count = 0;
    DIR *directory = opendir(folder);
    if (!directory) return -1;
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* Compares every listed file of the variant; returns how many the list has. */
static int check_digests(const char *variant) {
    FILE *list = fopen(TEST_DATA "/oracle/checkpoints.sha256", "r");
    T_CHECK(list, "the list of digests");
    if (!list) return 0;
    char line[256], hex[65], path[1024];
    size_t prefix = strlen(variant);
    int listed = 0;
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = 0;
        const char *name = line + 66; /* 64 digits, two spaces */
        if (strlen(line) < 67 || strncmp(name, variant, prefix) || name[prefix] != '/') continue;
        listed++;
        snprintf(path, sizeof path, BUILD_DIR "/checkpoints/%s", name);
        bool read = digest_of(path, hex);
        T_CHECK(read && !strncmp(hex, line, 64), "%s: %s", name, read ? hex : "not readable");
    }
    fclose(list);
    return listed;
}

static void check_variant(plumb_synth_variant variant, int threads) {
    char folder[512];
    const char *name = plumb__synth_variant_name((int)variant);
    snprintf(folder, sizeof folder, BUILD_DIR "/checkpoints/%s", name);
    plumb_synth_options options = {
        .variant = variant, .folder = folder, .seed = 1, .force = true, .threads = threads};
    plumb_error err;
    plumb_status status = plumb__synth_write(&options, &err);
    T_CHECK(status == PLUMB_OK, "%s: %s", err.file, err.found);
    int listed = check_digests(name);
    T_CHECK(listed == 8, "%d files listed", listed);
    T_CHECK(files_in(folder) == listed, "%d files in %s", files_in(folder), folder);
}

/* Different numbers of threads, since none may change a byte. */
static void tiny(void) {
    check_variant(PLUMB_SYNTH_TINY, 1);
}
static void deep40(void) {
    check_variant(PLUMB_SYNTH_DEEP40, 3);
}
static void dspark(void) {
    check_variant(PLUMB_SYNTH_DSPARK, 0);
}
static void vision(void) {
    check_variant(PLUMB_SYNTH_VISION, 2);
}

/* Digests of what the reference generator writes with another seed. */
static void another_seed(void) {
    static const struct {
        const char *file, *digest;
    } cases[] = {
        {"model-00001-of-00004.safetensors",
         "5f900876bd27ea9c09ef807b2584ee0329ee873f1491201c8bb3cbd5048c665d"},
        {"model-00002-of-00004.safetensors",
         "017ea46c7c7bec42ef71d99bede367a242144f90cb8d35ed08671458b9314051"},
        {"engram_token_map.json",
         "a4cbc350f0ede24efb068d2142dc76b47fd40d893b3ca15ee0d7b01dfe47ac86"},
    };
    plumb_synth_options options = {.variant = PLUMB_SYNTH_TINY,
                                   .folder = BUILD_DIR "/checkpoints/tiny-seed2",
                                   .seed = 2,
                                   .force = true};
    plumb_error err;
    T_CHECK(plumb__synth_write(&options, &err) == PLUMB_OK, "%s: %s", err.file, err.found);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[1024], hex[65] = "";
        snprintf(path, sizeof path, "%s/%s", options.folder, cases[i].file);
        T_CHECK(digest_of(path, hex) && !strcmp(hex, cases[i].digest), "%s: %s", path, hex);
    }
}

T_MAIN({"tiny", tiny}, {"deep40", deep40}, {"dspark", dspark}, {"vision", vision},
       {"another_seed", another_seed})
