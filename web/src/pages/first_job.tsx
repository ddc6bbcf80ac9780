// What an empty server shows: how the first job gets in, and out again.
import {kBase} from "../api/client";
import {type Call, curl} from "../lib/shell";
import {useSession} from "../live/session";
import {Command, Panel} from "../ui/basics";

/** Makes commands that call this server's API. */
export function useCurl(): (path: string, call?: Call) => string {
  const {authentication} = useSession();
  return (path, call) => curl(location.origin + kBase + path, {...call, token: authentication});
}

/** The command that submits a job to the topic, due in so many milliseconds. */
export function useSubmitCommand(): (topic: string, delay_ms: number) => string {
  const command = useCurl();
  return (topic, delay_ms) => command(`/v1/topics/${encodeURIComponent(topic)}/jobs`, {body: JSON.stringify({payload: "hello", delay_ms})});
}

export function FirstJob() {
  const command = useCurl();
  const submit = useSubmitCommand();
  return (
    <Panel title="The first job">
      <p>There is no topic yet. A topic is made by the first job that is submitted to it. Paste this into a terminal: the job is due in
        five seconds.</p>
      <Command text={submit("greetings", 5000)} />
      <p>Wait for it, as a consumer does:</p>
      <Command text={command("/v1/topics/greetings/reserve", {body: '{"wait_ms":10000}'})} />
      <p class="muted">Or with the command line:</p>
      <Command text={`tocsin submit greetings hello --in 5s --server ${location.origin + kBase}`} />
    </Panel>
  );
}
