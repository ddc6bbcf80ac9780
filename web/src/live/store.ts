// A value that components watch: the smallest store that does.
import {useEffect, useState} from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of [...this.listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** The store's value; the component renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, render] = useState({});
  const value = store.get();
  useEffect(() => {
    if (!Object.is(store.get(), value)) render({});  // it changed between the render and now
    return store.subscribe(() => render({}));
  }, [store]);
  return value;
}
