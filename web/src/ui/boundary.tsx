// A page that cannot be drawn says so; the others go on.
import {Component, type ComponentChildren} from "preact";
import {messageOf} from "../api/client";
import {Button, Note} from "./basics";

interface State {
  error?: unknown;
}

export class Boundary extends Component<{children: ComponentChildren}, State> {
  static override getDerivedStateFromError(error: unknown): State {
    return {error};
  }

  override render() {
    const {error} = this.state;
    if (error === undefined) return this.props.children;
    return (
      <Note tone="bad">
        <p>This page cannot be shown: {messageOf(error)}</p>
        <Button onClick={() => location.reload()}>Load the dashboard again</Button>
      </Note>
    );
  }
}
