// The way in: an access token becomes a session cookie, which scripts cannot read.
import {useState} from "preact/hooks";
import {ApiError, messageOf} from "../api/client";
import {login} from "../live/session";
import {Button, Note} from "../ui/basics";
import {Input} from "../ui/fields";

export function LoginPage({message}: {message?: string | undefined}) {
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      await login(token.trim());
    } catch (failure) {
      setError(failure instanceof ApiError && failure.status === 401 ? "The server does not know this access token." : messageOf(failure));
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form class="panel" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <h1>Tocsin</h1>
        {message && <Note tone="info">{message}</Note>}
        <Input label="Access token" name="token" type="password" value={token} onInput={setToken} error={error || undefined} autoFocus mono
               help={<>An administrator makes one with <code>tocsin token create</code>.</>} />
        <Button type="submit" kind="primary" busy={busy} disabled={token.trim() === ""}>Log in</Button>
      </form>
    </main>
  );
}
