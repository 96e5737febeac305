import { execFileSync } from "node:child_process"
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs"
import path from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { opencodeDatabase, tides } from "./opencodeDatabase.ts"

/** Databases of opencode that somebody made to mislead or to stop whoever reads them. The session is `ses_1`. */

/** Lets statements change the schema as a table. Not among the types yet. */
const unprotected = { readOnly: false, defensive: false }

const changed = (file: string, change: (database: DatabaseSync) => void): void => {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite")
  const database = new DatabaseSync(file, unprotected)
  change(database)
  database.close()
}

const endless = (columns: string) =>
  `with recursive r(i) as (select 1 union all select i + 1 from r) select ${columns} from r`
const messages = "'msg_' || i as id, 'ses_1' as session_id, 1 as time_created, 1 as time_updated, '{}' as data"

const pageBytes = 4_096

/** The bytes of an inner page of a table, all of whose children are one page. */
const innerPage = (child: number): Buffer => {
  const page = Buffer.alloc(pageBytes)
  const cells = 300
  page[0] = 5
  page.writeUInt16BE(cells, 3)
  page.writeUInt16BE(pageBytes - cells * 6, 5)
  page.writeUInt32BE(child, 8)
  for (let cell = 0; cell < cells; cell += 1) {
    const at = pageBytes - (cell + 1) * 6
    page.writeUInt16BE(at, 12 + cell * 2)
    page.writeUInt32BE(child, at)
    page[at + 4] = 0x80 | (cell >> 7)
    page[at + 5] = cell & 0x7f
  }
  return page
}

/** Makes a table of pages in which each has 300 times the next one as its child: 300 to the power of 18 leaves, in 80 KB. */
const makeEndlessTable = (file: string, table: string): void => {
  const pages: Array<number> = []
  changed(file, (database) => {
    database.exec(`
      create table filler (bytes blob);
      insert into filler with recursive r(i) as (select 1 union all select i + 1 from r where i < 20) select zeroblob(4000) from r;
    `)
    const root = database.prepare("select rootpage from sqlite_schema where name = ?").get(table)
    pages.push(Number(root?.["rootpage"]))
    for (const { pageno } of database
      .prepare("select pageno from dbstat where name = 'filler' and pagetype = 'leaf'")
      .all()) {
      pages.push(Number(pageno))
    }
  })
  const [root = 0, leaf = 0, ...inner] = pages
  const levels = [root, ...inner.slice(0, 17), leaf]
  const bytes = readFileSync(file)
  for (const [index, page] of levels.entries()) {
    const child = levels[index + 1]
    if (child !== undefined) innerPage(child).copy(bytes, (page - 1) * pageBytes)
  }
  writeFileSync(file, bytes)
}

/** Replaces a table with what the statements make. */
const replaced = (table: string, statements: string) => (file: string) =>
  changed(file, (database) => database.exec(`drop table ${table}; ${statements}`))

/** Changes to a database that make it unreadable, by name. */
export const unreadable: Readonly<Record<string, (file: string) => void>> = {
  "a view without an end": replaced("message", `create view message as ${endless(messages)}`),
  "a view without an end, of the name in capitals": replaced(
    "part",
    `create view PART as ${endless("i as id, 'ses_1' as session_id")}`
  ),
  "a view that calls itself a table": (file) =>
    changed(file, (database) =>
      database.exec(`
        drop table message; create view message as ${endless(messages)};
        pragma writable_schema = on; update sqlite_schema set type = 'table' where name = 'message'
      `)
    ),
  "a view behind a table that has the name of a pragma": replaced(
    "message",
    `create view message as ${endless(messages)};
     create table pragma_table_list (schema, name, type); insert into pragma_table_list values ('main', 'message', 'table');`
  ),
  "a virtual table": replaced(
    "part",
    "create virtual table part using fts5 (id, message_id, session_id, time_created, data)"
  ),
  "a computed column": replaced(
    "part",
    "create table part (id text, message_id text, session_id text, time_created int, data text as (hex(zeroblob(400000000))))"
  ),
  "no table of messages": replaced("message", ""),
  "an id of a megabyte": (file) =>
    changed(file, (database) => database.exec("update part set id = id || hex(zeroblob(500000))")),
  "a damaged page": (file) => {
    let root = 0
    changed(file, (database) => {
      root = Number(database.prepare("select rootpage from sqlite_schema where name = 'part'").get()?.["rootpage"])
    })
    const bytes = readFileSync(file)
    bytes.fill(0xff, (root - 1) * pageBytes, root * pageBytes)
    writeFileSync(file, bytes)
  },
  "no database": (file) => writeFileSync(file, "hello\n".repeat(1_000)),
  "two gigabytes of nothing": (file) => {
    const descriptor = openSync(file, "w")
    writeSync(descriptor, "SQLite format 3\0")
    ftruncateSync(descriptor, 2 * 1024 ** 3)
    closeSync(descriptor)
  },
  "a pipe for its log": (file) => void execFileSync("mkfifo", [`${file}-wal`])
}

/** What stands in place of a database, by name. */
export const noFile: Readonly<Record<string, (file: string) => void>> = {
  "a pipe": (file) => void execFileSync("mkfifo", [file]),
  "a folder": (file) => mkdirSync(file)
}

/** Changes that leave a database readable. */
export const readable: Readonly<Record<string, (file: string) => void>> = {
  "triggers, checks and indices that compute": (file) =>
    changed(file, (database) =>
      database.exec(`
        create trigger t after insert on message begin delete from message; end;
        create index i on part (upper(data)) where length(data) > 3;
        create view other as ${endless("i")};
        alter table message add column twice text as (data || data);
        alter table part add column checked int check (checked > (random() & 1));
      `)
    ),
  "times that are none": (file) =>
    changed(file, (database) =>
      database.exec("update session set time_updated = 9e300; update message set time_created = 'noon'")
    )
}

/** Writes a database with one session, changed. Returns its path. */
export const hostileDatabase = (folder: string, change: (file: string) => void): string => {
  const file = opencodeDatabase(folder, tides)
  change(file)
  return file
}

/** Writes a database whose table of messages has pages without an end: a statement that reads it never ends. Returns its path. */
export const endlessDatabase = (folder: string): string =>
  hostileDatabase(folder, (file) => makeEndlessTable(file, "message"))

/** Writes a database with more sessions than are listed. Returns its path. */
export const crowdedDatabase = (folder: string): string =>
  hostileDatabase(folder, (file) =>
    changed(file, (database) =>
      database.exec(`
        create index part_session on part (session_id);
        insert into session select 'ses_x' || i, 'p', null, '/', '', null, 1, 1
        from (with recursive r(i) as (select 1 union all select i + 1 from r where i < 1000000) select i from r);
      `)
    )
  )

/** Where opencode's database lies below a home folder. */
export const databaseFolder = (home: string): string => path.join(home, ".local/share/opencode")
