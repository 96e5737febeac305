import { assert, it } from "@effect/vitest"
import { parseStoreAddress, type StoreAddress } from "../../../src/domain/session/StoreAddress.ts"

const cases: ReadonlyArray<readonly [text: string, address: StoreAddress | undefined]> = [
  ["files", { _tag: "Files", folder: undefined }],
  [" files\n", { _tag: "Files", folder: undefined }],
  ["files:", undefined],
  ["files:~/a", { _tag: "Files", folder: "/home/a" }],
  ["files:a~/b", { _tag: "Files", folder: "a~/b" }],
  ["sqlite:~/a:b.db", { _tag: "Sqlite", file: "/home/a:b.db" }],
  [" sqlite:/a b", { _tag: "Sqlite", file: "/a b" }],
  ["sqlite", undefined],
  [" postgres://u@h/d ", { _tag: "Postgres", url: "postgres://u@h/d" }],
  ["postgresql://h", { _tag: "Postgres", url: "postgresql://h" }],
  ["postgres:h/d", undefined],
  ["postgres://h:port", undefined],
  ["mysql://h/d", undefined],
  ["", undefined]
]

it.each(cases)("the store %j", (text, address) => assert.deepStrictEqual(parseStoreAddress(text, "/home"), address))
