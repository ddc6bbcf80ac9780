// A modal dialog: the browser's own, which keeps the focus inside and gives it back.
import type {ComponentChildren} from "preact";
import {useEffect, useRef} from "preact/hooks";
import {visible} from "../lib/text";
import {Button} from "./basics";
import {dialogsStore, Toasts} from "./toast";

interface Props {
  title: string;
  onClose: () => void;
  onSubmit?: () => void;  // Enter in a field, or a button that submits
  children: ComponentChildren;
  wide?: boolean;
}

export function Dialog({title: text, onClose, onSubmit, children, wide}: Props) {
  const title = visible(text);
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (!dialog) return;
    const focused = document.activeElement;
    dialog.showModal();
    dialogsStore.set(dialogsStore.get() + 1);
    return () => {
      dialogsStore.set(dialogsStore.get() - 1);
      dialog.close();
      if (focused instanceof HTMLElement) focused.focus();
    };
  }, []);
  const onCancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog ref={element} class={wide ? "dialog wide" : "dialog"} aria-label={title} onCancel={onCancel}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <Button icon="close" label="Close" kind="quiet" onClick={onClose} />
      </header>
      {onSubmit ? <form class="dialog-form" onSubmit={(event) => { event.preventDefault(); onSubmit(); }}>{children}</form> : children}
      <Toasts inDialog />
    </dialog>
  );
}
