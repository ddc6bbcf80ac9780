// `tocsin token create|list|revoke`: edits the file of access tokens that a server reads (auth/token_file.h). A running
// server notices the change within a second.
#include "auth/token_file.h"
#include "cli/arguments.h"

namespace tocsin::cli {
namespace {

Flag TokenFileFlag() {
  return {.name = "file",
          .doc = "The file of access tokens; the server's auth.token_file.",
          .value = "FILE",
          .variable = "TOCSIN_AUTH_TOKEN_FILE"};
}

Result<std::string> FileOf(const Arguments& arguments) {
  if (auto file = arguments.Text("file")) return *std::move(file);
  return Fail(Code::kInvalidArgument, "--file is missing: the file of the server's access tokens");
}

Result<int> RunCreate(Context& context, const Arguments& arguments) {
  auth::Grant grant{.name = arguments.Text("name").value_or(""), .prefix = arguments.Text("topic-prefix").value_or("")};
  for (const std::string& name : arguments.All("scope")) grant.scopes.Add(*auth::ParseScope(name));
  if (grant.name.empty()) return Fail(Code::kInvalidArgument, "--name is missing: who will have the access token?");
  if (grant.scopes.empty())
    return Fail(Code::kInvalidArgument, "--scope is missing: submit, consume, observe or admin");
  TOCSIN_ASSIGN(const std::string file, FileOf(arguments));
  if (const auto subject = arguments.Text("certificate")) {
    TOCSIN_ASSIGN(const std::string id, auth::CreateCertificate(file, grant, *subject, context.clock.Now().utc));
    if (context.out.json()) {
      context.out.Json({{"id", id}, {"certificate", *subject}});
    } else {
      context.out.Print("{}: clients with the certificate {} need no access token\n", id, Printable(*subject));
      TOCSIN_TRY(context.out.Flush());
      PrintStderr("Take it back: tocsin token revoke --file {} {}\n", file, id);
    }
    return kExitOk;
  }
  TOCSIN_ASSIGN(const std::string token, auth::CreateToken(file, grant, context.clock.Now().utc));
  if (context.out.json()) {
    context.out.Json({{"id", auth::SplitToken(token)->id}, {"token", token}});
    return kExitOk;
  }
  context.out.Print("{}\n", token);
  TOCSIN_TRY(context.out.Flush());
  PrintStderr(
      "This is the only time that the access token is shown. Use it: export TOCSIN_TOKEN=...\n"
      "The server: tocsind --auth-token-file {}\n"
      "Take it back: tocsin token revoke --file {} {}\n",
      file, file, auth::SplitToken(token)->id);
  return kExitOk;
}

Result<int> RunList(Context& context, const Arguments& arguments) {
  TOCSIN_ASSIGN(const std::string file, FileOf(arguments));
  TOCSIN_ASSIGN(const std::vector<auth::TokenRecord> records, auth::ListTokens(file));
  Table table({"ID", "SCOPES", "TOPICS", "CREATED", "NAME", "CERTIFICATE"});
  for (const auth::TokenRecord& record : records) {
    if (context.out.json()) {
      context.out.Json({{"id", record.id},
                        {"name", record.grant.name},
                        {"scopes", record.grant.scopes.Text()},
                        {"topic_prefix", record.grant.prefix},
                        {"created", record.created},
                        {"certificate", record.certificate}});
      continue;
    }
    table.Row({record.id, record.grant.scopes.Text(), Printable(record.grant.prefix) + "*", Printable(record.created),
               Printable(record.grant.name), Printable(record.certificate)});
  }
  if (!context.out.json()) table.Print(context.out);
  return kExitOk;
}

Result<int> RunRevoke(Context& context, const Arguments& arguments) {
  TOCSIN_ASSIGN(const std::string file, FileOf(arguments));
  const std::string id = *arguments.Text("ID");
  TOCSIN_TRY(auth::RevokeToken(file, id));
  if (context.out.json()) {
    context.out.Json({{"revoked", id}});
  } else {
    context.out.Print("revoked {}; servers that read the file refuse it within a second\n", id);
  }
  return kExitOk;
}

}  // namespace

Command TokenCreate() {
  return {
      .name = "token create",
      .summary = "makes an access token, and prints it once",
      .details =
          "Creates the file if there is none, with mode 0600. The file holds a digest of the access token, never "
          "the token itself. A running server notices the change within a second.",
      .flags = {TokenFileFlag(),
                {.name = "name", .doc = "Who has the access token, for you to know later.", .value = "NAME"},
                {.name = "scope",
                 .kind = Kind::kChoice,
                 .doc = "What it may do: submit; consume; observe (topics, jobs without payloads, figures); or admin, "
                        "which includes all.",
                 .value = "SCOPE",
                 .choices = {auth::kScopeNames.begin(), auth::kScopeNames.end()},
                 .repeated = true},
                {.name = "certificate",
                 .doc = "Instead of a token: the subject of a client's certificate, such as CN=worker,O=Acme. Clients "
                        "with such a certificate of the server's tls.client_ca need no access token.",
                 .value = "SUBJECT"},
                {.name = "topic-prefix",
                 .doc = "Only for topics whose names begin with this. Default: all topics.",
                 .value = "PREFIX"}},
      .examples = {{"token create --file tokens --name ops --scope admin", "for you"},
                   {"token create --file tokens --name shop --scope submit --topic-prefix shop.",
                    "for a producer of the topics shop.orders, shop.carts..."},
                   {"token create --file tokens --name worker --scope consume --certificate CN=worker",
                    "for clients that show this certificate"},
                   {"token create --file tokens --name prometheus --scope observe", "for whatever only looks"}},
      .run = RunCreate};
}

Command TokenList() {
  return {.name = "token list",
          .summary = "shows the access tokens of a file, without their secrets",
          .flags = {TokenFileFlag()},
          .examples = {{"token list --file tokens", "who may do what"}},
          .run = RunList};
}

Command TokenRevoke() {
  return {.name = "token revoke",
          .summary = "revokes an access token; a running server refuses it within a second",
          .positionals = {{"ID", "The access token's id: the part between tocsin_ and the secret."}},
          .flags = {TokenFileFlag()},
          .examples = {{"token revoke --file tokens k3v2a7qd", "token list shows the ids"}},
          .no = "there is no such access token, or no such file",
          .run = RunRevoke};
}

}  // namespace tocsin::cli
