// For access tokens that may not look around: what they may do, and the way to a job that they can name.
import {useState} from "preact/hooks";
import {go} from "../lib/route";
import {useSession} from "../live/session";
import {Button, Heading, Panel} from "../ui/basics";
import {Input} from "../ui/fields";

export function NoViewPage() {
  const {scopes} = useSession();
  const [topic, setTopic] = useState("");
  const [id, setId] = useState("");
  const [key, setKey] = useState("");
  const open = () => { if (topic && id) go(["topics", topic, "jobs", id], {key}); };
  return (
    <>
      <Heading title="A job" note="the page of one that you can name" />
      <Panel label="A job">
        <p>Your access token has the scope <strong>{scopes.join(", ")}</strong>. To see topics, lists and figures it needs <strong>observe</strong> as well.</p>
        <form onSubmit={(event) => { event.preventDefault(); open(); }}>
          <div class="form-row">
            <Input label="Topic" name="topic" value={topic} onInput={setTopic} mono />
            <Input label="Id" name="id" value={id} onInput={setId} mono />
            <Input label="Key" name="key" value={key} onInput={setKey} help="if the job has one" mono />
          </div>
          <footer class="form-foot"><Button type="submit" kind="primary" disabled={!topic || !id}>Show the job</Button></footer>
        </form>
      </Panel>
    </>
  );
}
