import {render} from "preact";
import {App} from "./app";
import "./app.css";
import "./live/theme";

render(<App />, document.getElementById("app")!);
