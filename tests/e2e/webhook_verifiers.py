"""What docs/webhooks.md tells receivers to do with a signature, in each of its languages, as a function of Python: the page's own
text, run by the language's own program.

    verify = webhook_verifiers.of("go", folder)     # a visible skip where Go is not installed
    verify(secret, topic, headers, body)
"""

import base64
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Shared by all runs: a new one would have Go compile its standard library each time.
GO_CACHE = ROOT / "build/go-cache"
DEADLINE_S = 120
SIGNED = ("webhook-id", "webhook-timestamp", "webhook-signature")

# Each reads the secret, the topic, the values of SIGNED and the body from stdin, a line of base64 for each, and prints true or false.
NODE_MAIN = """
const [secret, topic, id, timestamp, signatures, body] =
  require("node:fs").readFileSync(0, "utf8").split("\\n").map((line) => Buffer.from(line, "base64"));
const headers = { "webhook-id": `${id}`, "webhook-timestamp": `${timestamp}`, "webhook-signature": `${signatures}` };
console.log(verify(`${secret}`, `${topic}`, headers, body));
"""
PHP_MAIN = """
[$secret, $topic, $id, $timestamp, $signatures, $body] =
    array_map('base64_decode', explode("\\n", stream_get_contents(STDIN)));
$headers = ['webhook-id' => $id, 'webhook-timestamp' => $timestamp, 'webhook-signature' => $signatures];
echo verify($secret, $topic, $headers, $body) ? "true\\n" : "false\\n";
"""
GO_MAIN = """package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"time"

	"receiver/hooks"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	next := func() string {
		lines.Scan()
		text, err := base64.StdEncoding.DecodeString(lines.Text())
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	secret, topic := next(), next()
	headers := http.Header{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		headers.Set(name, next())
	}
	fmt.Println(hooks.Verify(secret, topic, headers, []byte(next()), 5*time.Minute))
}
"""
JAVA_MAIN = """
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Scanner;

class Main {
  static final Scanner LINES = new Scanner(System.in, StandardCharsets.US_ASCII);

  static byte[] bytes() { return Base64.getDecoder().decode(LINES.nextLine()); }

  static String text() { return new String(bytes(), StandardCharsets.UTF_8); }

  public static void main(String[] none) throws Exception {
    System.out.println(Webhook.verify(text(), text(), text(), text(), text(), bytes(), Duration.ofMinutes(5)));
  }
}
"""


def snippet(language):
    page = (ROOT / "docs/webhooks.md").read_text()
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
    return text


def installed(program, package):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed (Debian: {package})")
    return path


def python(folder):
    names = {}
    exec(snippet("python"), names)
    return names["verify"]


def node(folder):
    return calling(installed("node", "nodejs"), "-e", snippet("js") + NODE_MAIN)


def php(folder):
    return calling(installed("php", "php-cli"), "-r", snippet("php") + PHP_MAIN)


def go(folder):
    go = installed("go", "golang-go")
    (folder / "hooks").mkdir(parents=True)
    (folder / "go.mod").write_text("module receiver\n\ngo 1.19\n")
    (folder / "main.go").write_text(GO_MAIN)
    (folder / "hooks/hooks.go").write_text(snippet("go"))
    apart = {"HOME": folder, "GOCACHE": GO_CACHE, "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    build(folder, go, "build", "-o", "main", ".", env={**os.environ, **apart})
    return calling(folder / "main")


def java(folder):
    javac, java = installed("javac", "default-jdk-headless"), installed("java", "default-jre-headless")
    folder.mkdir(parents=True)
    (folder / "Webhook.java").write_text(snippet("java"))
    (folder / "Main.java").write_text(JAVA_MAIN)
    build(folder, javac, "-Xlint:all", "-Werror", "Webhook.java", "Main.java")
    return calling(java, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", folder, "Main")


LANGUAGES = {"python": python, "node": node, "go": go, "java": java, "php": php}


def of(language, folder):
    """verify(secret, topic, headers, body) of that language; what it has to build is built in `folder`, which is new."""
    return LANGUAGES[language](folder)


def build(folder, *command, env=None):
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr


def calling(*command):
    def verify(secret, topic, headers, body):
        parts = [secret.encode(), topic.encode(), *(headers[name].encode() for name in SIGNED), body]
        lines = "".join(base64.b64encode(part).decode() + "\n" for part in parts)
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=DEADLINE_S)
        assert done.returncode == 0, done.stderr
        return {"true\n": True, "false\n": False}[done.stdout]

    return verify
