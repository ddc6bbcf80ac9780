#include "frontend/http/ui.h"

#include <gtest/gtest.h>

#include "frontend/http/session.h"

namespace tocsin::http {
namespace {

constexpr UiFile kFiles[] = {{.name = "app-0a1b2c3d.js"}, {.name = "index.html"}};

std::string_view Found(std::string_view path) {
  const UiFile* const file = FindUiFile(kFiles, path);
  return file == nullptr ? "none" : file->name;
}

TEST(Ui, AFileOrTheIndex) {
  EXPECT_EQ(Found("app-0a1b2c3d.js"), "app-0a1b2c3d.js");
  EXPECT_EQ(Found(""), "index.html");
  EXPECT_EQ(Found("index.html"), "index.html");
  EXPECT_EQ(Found("topics"), "none") << "pages are behind a #";
  EXPECT_EQ(Found("app.js"), "none");
  EXPECT_EQ(Found(".."), "none");
  EXPECT_EQ(FindUiFile({}, ""), nullptr);
}

TEST(Ui, RoutesOfAllPaths) {
  const Router router = MakeRouter(false);
  for (const char* path : {"/ui", "/ui/", "/ui/a", "/ui/a/b/c", "/ui/a?b=c&b=d", "/ui//"}) {
    ASSERT_TRUE(router.Find(Verb::get, path)) << path;
    EXPECT_TRUE(router.Find(Verb::get, path)->route->pattern.starts_with("/ui")) << path;
  }
  EXPECT_EQ(router.Find(Verb::get, "/ui/a/b%20c?q")->params, std::vector<std::string>{"a/b c"});
  EXPECT_EQ(router.Find(Verb::get, "/uix").error().code, Code::kNotFound);
  EXPECT_EQ(router.Find(Verb::get, "/ui/%zz").error().code, Code::kInvalidArgument);
  EXPECT_EQ(router.Find(Verb::post, "/ui/a").error().code, Code::kMethodNotAllowed);
}

TEST(Ui, IsUiPath) {
  for (const char* path : {"/ui", "/ui/", "/ui/a?b"}) EXPECT_TRUE(IsUiPath(path)) << path;
  for (const char* path : {"/", "/uix", "/v1/ui/"}) EXPECT_FALSE(IsUiPath(path)) << path;
}

TEST(Ui, Etags) {
  EXPECT_TRUE(NamesEtag(R"(W/"a1")", R"(W/"a1")"));
  EXPECT_TRUE(NamesEtag(R"("b2", W/"a1")", R"(W/"a1")"));
  EXPECT_TRUE(NamesEtag("*", R"(W/"a1")"));
  EXPECT_FALSE(NamesEtag("", R"(W/"a1")"));
  EXPECT_FALSE(NamesEtag(R"("a1")", R"(W/"a2")"));
}

TEST(Ui, WhatIsBuiltInIsComplete) {
  if (UiFiles().empty()) GTEST_SKIP() << "built without the dashboard";
  ASSERT_NE(FindUiFile(UiFiles(), ""), nullptr);
  for (const UiFile& file : UiFiles()) {
    EXPECT_FALSE(file.plain.empty()) << file.name;
    EXPECT_TRUE(file.gzip.starts_with("\x1f\x8b")) << file.name;
    EXPECT_FALSE(file.content_type.empty()) << file.name;
    EXPECT_EQ(FindUiFile(UiFiles(), file.name), &file);
  }
}

}  // namespace
}  // namespace tocsin::http
