"""Certificates of an authority of the tests' own, made with openssl."""

import subprocess

OPENSSL_S = 30


class Authority:
    """`ca` is its certificate; `issue(name)` makes one, of a server or a client, and returns its files."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.ca, self.key = folder / "ca.crt", folder / "ca.key"
        self._openssl("req", "-x509", *self._new_key(self.key), "-out", self.ca, "-days", 40, "-subj", "/CN=ca")

    def issue(self, name, address="127.0.0.1", days=2, rsa=False):
        """The certificate's file, and that of its key. With `days` of -1 it has expired."""
        certificate, key, request, names = (self.folder / f"{name}.{end}" for end in ("crt", "key", "csr", "names"))
        names.write_text(f"basicConstraints=CA:FALSE\nsubjectAltName=IP:{address}\n")
        new_key = ["-newkey", "rsa:3072", "-nodes", "-keyout", key] if rsa else self._new_key(key)
        self._openssl("req", *new_key, "-out", request, "-subj", f"/CN={name}")
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.key, "-CAcreateserial",
                      "-out", certificate, "-days", days, "-extfile", names)
        return certificate, key

    @staticmethod
    def _new_key(file):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file]

    @staticmethod
    def _openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=OPENSSL_S)
