// A folder of its own for each test, removed at the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/stat.h>

namespace tocsin::auth {

class TestFolder {
 public:
  TestFolder() : path_((std::filesystem::temp_directory_path() / "tocsin-auth-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string At(const std::string& name) const { return path_ + "/" + name; }

  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    std::ofstream(At(name)) << text;
    ::chmod(At(name).c_str(), mode);
    return At(name);
  }

  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(At(name)).rdbuf();
    return std::move(text).str();
  }

  size_t Count() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {})); }

 private:
  std::string path_;
};

}  // namespace tocsin::auth
