// What libc++ has of std::string in its library, compiled with the memory sanitizer, which would take whatever the
// library's own writes for unwritten.
#include <string>

template class std::basic_string<char>;
template std::string std::operator+(const char*, const std::string&);
