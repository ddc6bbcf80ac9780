// What the tests use of node, so that they are type-checked without another package.
declare module "node:test" {
  export function test(name: string, run: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  interface Assert {
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    match(text: string, pattern: RegExp, message?: string): void;
    ok(value: unknown, message?: string): void;
    throws(run: () => unknown, pattern?: RegExp | typeof Error): void;
  }
  const assert: Assert;
  export default assert;
}
declare const process: {env: Record<string, string | undefined>};
