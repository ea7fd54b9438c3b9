#include "metrics/series.h"

#include <string.h>

#include "math/base.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Returns the end of the name that `text` begins with, or `text` if it begins with no name.
const char* skip_name(const char* text) {
    if (!is_letter(*text)) return text;
    while (is_letter(*text) || (*text >= '0' && *text <= '9')) ++text;
    return text;
}

// Returns the end of the quoted value that `text` begins with, in which \", \\ and \n are escaped, or null.
const char* skip_value(const char* text) {
    if (*text++ != '"') return nullptr;
    for (; *text != '"'; ++text) {
        if (*text == 0 || *text == '\n') return nullptr;
        if (*text == '\\' && !strchr("\"\\n", *++text)) return nullptr;
        if (*text == 0) return nullptr;
    }
    return text + 1;
}

struct Name {
    const char* start;
    size_t length;

    bool is_before(const Name& other) const {
        const int order = memcmp(start, other.start, length < other.length ? length : other.length);
        return order != 0 ? order < 0 : length < other.length;
    }
};

bool contains(const char* names, const Name& name) {
    DS_ASSERT(name.length > 0);
    for (;;) {
        const size_t length = strcspn(names, ",");
        if (length == name.length && memcmp(names, name.start, length) == 0) return true;
        if (names[length] == 0) return false;
        names += length + 1;
    }
}

Name name_of(const char* label) {
    DS_ASSERT(is_letter(*label));
    return {label, static_cast<size_t>(skip_name(label) - label)};
}

// Returns the end of the label that `text` begins with: a comma, or the end of the text.
const char* skip_label(const char* text) {
    const char* const value = skip_name(text);
    DS_ASSERT(value != text && *value == '=');
    const char* const end = skip_value(value + 1);
    DS_ASSERT(end && (*end == ',' || *end == 0));
    return end;
}

ds_status fail_labels(const char* labels, const char* why) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "labels", "write them as a=\"x\",b=\"y\", in the order of their names",
                "labels is %s; %s", labels, why);
}

}  // namespace

ds_status check_series_name(const char* name) {
    if (*name && *skip_name(name) == 0 && strlen(name) < sizeof ds_series_info::name) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "name", "", "name is \"%s\"; it must be up to %d letters, digits and underscores",
                name, static_cast<int>(sizeof ds_series_info::name) - 1);
}

ds_status check_labels(const char* labels) {
    if (strlen(labels) >= sizeof ds_series_info::labels) return fail_labels(labels, "it is too long");
    Name previous = {labels, 0};
    for (const char* text = labels; *text;) {
        const char* end = skip_name(text);
        const Name name = {text, static_cast<size_t>(end - text)};
        if (name.length == 0 || *end != '=') return fail_labels(labels, "a name and = are expected");
        if (text != labels && !previous.is_before(name)) return fail_labels(labels, "names must be in ascending order");
        if (!(text = skip_value(end + 1))) return fail_labels(labels, "a value in quotes is expected");
        if (*text && (*text++ != ',' || *text == 0)) return fail_labels(labels, "a comma and a label are expected");
        previous = name;
    }
    return DS_STATUS_OK;
}

void copy_labels_without(const char* labels, const char* names, char* to) {
    char* const start = to;
    while (*labels) {
        const char* const end = skip_label(labels);
        if (!contains(names, name_of(labels))) {
            if (to != start) *to++ = ',';
            const size_t length = static_cast<size_t>(end - labels);
            DS_ASSERT(to - start + end - labels < static_cast<int64_t>(sizeof ds_series_info::labels));
            memcpy(to, labels, length);
            to += length;
        }
        labels = *end ? end + 1 : end;
    }
    *to = 0;
}

ds_status merge_labels(const char* a, const char* b, char* to) {
    char* const start = to;
    if (strlen(a) + strlen(b) + 2 > sizeof ds_series_info::labels) return fail_labels(b, "it is too long");
    while (*a || *b) {
        const bool from_a = *b == 0 || (*a && name_of(a).is_before(name_of(b)));
        if (!from_a && *a && !name_of(b).is_before(name_of(a))) return fail_labels(b, "a name is there twice");
        const char*& from = from_a ? a : b;
        const char* const end = skip_label(from);
        if (to != start) *to++ = ',';
        memcpy(to, from, static_cast<size_t>(end - from));
        to += end - from;
        DS_ASSERT(to - start < static_cast<int64_t>(sizeof ds_series_info::labels));
        from = *end ? end + 1 : end;
    }
    *to = 0;
    return DS_STATUS_OK;
}

}  // namespace doorstep
