/**
 * Lists what common programs may be called with under a grant of their name: the harmless options of each, never the dangerous ones.
 * The grant does not cover anything else, including abbreviations of long options.
 *
 * Sources: the manuals of the programs. GNU coreutils 9, findutils 4.9, diffutils 3.10, grep 3.11, sed 4.9 and gawk 5.2; git 2.47
 * (git-status(1) and the others); ripgrep 14; fd 10; jq 1.7; tree 2.1; file 5.45; procps 4; npm 11; pnpm 10; yarn 4; bun 1.2;
 * cargo 1.83; go 1.23; pytest 8; docker 27. Programs that run, write or connect by an operand or by any of many options (tar, zip,
 * rsync, curl, vim, less, man, cp, tee, dd, make, node, python, …) are left out on purpose: a grant covers only their exact words.
 *
 * One file: a single table of programs and the options that only read, checked against docs/approval.md.
 */

/** A word of a command, with its quotes removed. */
export interface Word {
  readonly text: string
  /** Whether the word contains a file name pattern. `prefixed`: its expansion begins with a fixed character other than `-`. */
  readonly pattern?: "prefixed" | "open" | undefined
  /** Offset of the pattern. */
  readonly patternAt?: number | undefined
  /** Whether the word begins with the home folder. */
  readonly isHome?: boolean | undefined
}

/** The effect of a program called with listed options only. */
export type Effects = "reads" | "makes" | "runs"

/** How a program may be called under a grant of its name. */
export interface Usage {
  /** `reads` only reads, `makes` changes what its name says, `runs` runs code of the folder in which it is called. */
  readonly effects: Effects
  /**
   * Harmless options: `-a` and `--all` take no value, `-n=` and `--max=` take one, `-M?` and `--color?` may have one attached.
   * `any`: the program has no harmful options.
   */
  readonly options: ReadonlyMap<string, "none" | "value" | "joined"> | "any"
  /** Returns whether the operands, in order, are harmless. Absent: all are. */
  readonly operands?: ((words: ReadonlyArray<Word>) => boolean) | undefined
  /** Whether words after `--` are still checked as options, because another program receives them. */
  readonly judgesRest?: boolean | undefined
  /** Whether operands are paths that the program creates. */
  readonly makesOperands?: boolean | undefined
  /** Whether long names follow a single dash, as in `find` and `go`. */
  readonly hasLongShorts?: boolean | undefined
  /**
   * Whether a short option may have its value attached (`-n5`), as getopt(3) reads it. Without this, a letter that takes a value has to
   * be the last of its word: `tree -Lo 2 x` takes the value from the next word, and its `o` writes.
   */
  readonly joinsValues?: boolean | undefined
  /** Whether the effect depends on the settings of the repository in the folder, which can name programs. The grant then names the folder. */
  readonly isLocal?: boolean | undefined
  /** No word may match this pattern. */
  readonly refuses?: RegExp | undefined
}

const optionsOf = (list: string): Usage["options"] => {
  if (list === "any") return "any"
  const options = new Map<string, "none" | "value" | "joined">()
  for (const option of list.split(/\s+/)) {
    if (option === "") continue
    const last = option.at(-1)
    if (last === "=") options.set(option.slice(0, -1), "value")
    else if (last === "?") options.set(option.slice(0, -1), "joined")
    else options.set(option, "none")
  }
  return options
}

const usage = (effects: Effects, list: string, more: Omit<Usage, "effects" | "options"> = {}): Usage => ({
  effects,
  options: optionsOf(list),
  ...more
})

const reads = (list: string, more: Omit<Usage, "effects" | "options"> = {}): Usage => usage("reads", list, more)
const runs = (list: string, more: Omit<Usage, "effects" | "options"> = {}): Usage => usage("runs", list, more)

/** For programs that read their options with getopt(3) or in the same way. */
const joinedValues = { joinsValues: true } as const

const noOperands = (words: ReadonlyArray<Word>): boolean => words.length === 0
const isPlain = ({ isHome = false, pattern }: Word): boolean => pattern === undefined && !isHome
const allPlain = (words: ReadonlyArray<Word>): boolean => words.every(isPlain)

// --- git ---------------------------------------------------------------------------------------------------------------------

/** Excludes `--ext-diff`, `--textconv` and `-O` (they run programs), `--output` (writes) and `--no-index` (reads anywhere). */
const gitDiff = `-p -u --patch -s --no-patch -U= --unified= --raw --stat? --compact-summary --numstat --shortstat --dirstat? --summary
  --patch-with-stat --name-only --name-status --color? --no-color --word-diff? --word-diff-regex= --color-words? --no-renames -M? -C? -B?
  -R -a --text -w -b --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines -W --function-context
  --exit-code --quiet -q --cached --staged --merge-base --check --full-index --abbrev? --diff-filter= -S= -G= --pickaxe-all
  --pickaxe-regex --relative? --minimal --patience --histogram --diff-algorithm= --find-renames? --find-copies? -z
  --no-ext-diff --no-textconv --no-prefix --inter-hunk-context= -I= --ignore-matching-lines=`

const gitLog = `${gitDiff} -n= --max-count= --skip= --since= --until= --after= --before= --author= --committer= --grep= -i
  --regexp-ignore-case -E --extended-regexp -F --fixed-strings --all-match --invert-grep --all --branches? --tags? --remotes? --graph
  --oneline --decorate? --no-decorate --decorate-refs= --format= --pretty? --date= --abbrev-commit --no-abbrev-commit --no-merges
  --merges --first-parent --follow --reverse --topo-order --date-order --author-date-order --left-right --left-only --right-only
  --cherry-pick --cherry-mark --cherry -L= --no-walk --boundary --ancestry-path --simplify-by-decoration --full-history --source
  --no-notes -g --walk-reflogs --relative-date --parents --children -m -c --cc --root --log-size --count`

/** Read-only git commands depend on the folder: git runs the repository's `core.fsmonitor`, `diff.external`, filters and textconv. */
const gitReads = (list: string, more: Omit<Usage, "effects" | "options"> = {}): Usage =>
  reads(list, { ...more, isLocal: true })

const git: Readonly<Record<string, Usage>> = {
  "git status":
    gitReads(`-s --short -b --branch --porcelain? --long -v --verbose -u? --untracked-files? --ignored? --ignore-submodules?
    -z --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --show-stash`),
  "git diff": gitReads(gitDiff, joinedValues),
  "git log": gitReads(gitLog, joinedValues),
  "git show": gitReads(gitLog, joinedValues),
  "git rev-list": gitReads(`${gitLog} --objects`, joinedValues),
  // `git reflog expire` and `delete` change the reflog.
  "git reflog": gitReads(gitLog, { ...joinedValues, operands: noOperands }),
  "git stash list": gitReads(gitLog, { ...joinedValues, operands: noOperands }),
  "git stash show": gitReads(`${gitDiff} --include-untracked --only-untracked`, joinedValues),
  "git branch": gitReads(
    `-a --all -r --remotes -v -vv --verbose --list -l --show-current --contains= --no-contains= --merged= --no-merged= --sort=
    --points-at= --format= --color? --no-color --column? --no-column -i --ignore-case`,
    { operands: noOperands }
  ),
  "git remote": gitReads("-v --verbose", { operands: noOperands }),
  "git remote get-url": gitReads("--push --all"),
  "git tag": gitReads(
    "-l= --list= -n? --sort= --contains= --points-at= --merged= --no-merged= -i --ignore-case --format=",
    {
      operands: noOperands
    }
  ),
  "git rev-parse":
    gitReads(`--abbrev-ref? --short? --show-toplevel --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree
    --is-inside-git-dir --is-bare-repository --is-shallow-repository --verify -q --quiet --show-prefix --show-cdup --symbolic
    --symbolic-full-name --all --branches? --tags? --remotes? --show-superproject-working-tree`),
  "git ls-files": gitReads(
    `-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed
    --exclude-standard -z -t -v --full-name --error-unmatch -x= --exclude= --abbrev? --recurse-submodules --eol --directory`,
    joinedValues
  ),
  "git ls-tree": gitReads("-r -t -d -l --long --name-only --name-status --full-name --full-tree --abbrev? -z"),
  "git blame": gitReads(
    `-L= -w -C? -M? -s -e -l -t -p -f -n -b -c --date= --porcelain --line-porcelain --since= --root --show-email
    --show-name --show-number --ignore-rev= --abbrev= --incremental --first-parent`,
    joinedValues
  ),
  // Excludes `-O` and `--open-files-in-pager`, which start a program, and `--no-index`.
  "git grep": gitReads(
    `-n --line-number -i --ignore-case -l --files-with-matches --name-only -L --files-without-match -c --count -w
    --word-regexp -E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -e= -h -H -o --only-matching -q --quiet
    -v --invert-match -r --recursive -A= -B= -C= --after-context= --before-context= --context= --cached --untracked --all-match
    --and --or --not -p --show-function -W --function-context --break --heading --color? --no-color --max-depth= -I -a --text
    --column --full-name --threads= -m= --max-count= -z --null`,
    joinedValues
  ),
  "git shortlog": gitReads(
    "-s --summary -n --numbered -e --email -c --committer --all --since= --until= --no-merges --group="
  ),
  "git describe": gitReads(
    "--tags --always --abbrev= --dirty? --long --all --match= --exclude= --exact-match --contains --first-parent"
  ),
  "git merge-base": gitReads("-a --all --is-ancestor --fork-point --octopus --independent"),
  "git cat-file": gitReads("-p -t -s -e --batch-check? --batch?"),
  "git show-ref": gitReads(
    "--heads --tags --branches --head -s --hash? --abbrev? --verify -q --quiet -d --dereference"
  ),
  "git for-each-ref": gitReads(
    "--sort= --format= --count= --contains= --no-contains= --merged= --no-merged= --points-at="
  ),
  "git name-rev": gitReads("--name-only --tags --refs= --always --no-undefined"),
  "git check-ignore": gitReads("-v --verbose -n --non-matching -q --quiet -z --no-index"),
  "git count-objects": gitReads("-v --verbose -H --human-readable", { operands: noOperands }),
  "git config --get": gitReads("--global --local --system --show-origin --show-scope -z"),
  "git config --list": gitReads("--global --local --system --show-origin --show-scope -z --name-only", {
    operands: noOperands
  }),
  "git version": reads("--build-options", { operands: noOperands }),
  "git --version": reads("", { operands: noOperands }),
  "git add": usage("makes", "-A --all -u --update -v --verbose -n --dry-run -N --intent-to-add --ignore-errors", {
    isLocal: true
  }),
  // Runs the hooks of the repository. Excludes `--no-verify`, which skips them.
  "git commit": runs(
    "-m= --message= -a --all -q --quiet -v --verbose --amend --no-edit --allow-empty -s --signoff --dry-run",
    joinedValues
  )
}

// --- build runners: they run code of the folder --------------------------------------------------------------------------------

/** The `*` stands for a script name. Words after it would go to an unknown program. */
const script = runs("-s --silent --if-present", { operands: noOperands, judgesRest: true })

/** Excludes `--config`, `-Z`, `--manifest-path`, `--target-dir`, and words after `--` that are not listed. */
const cargo = `--release -r -p= --package= --workspace --all --lib --bins --bin= --tests --test= --examples --example= --benches --bench=
  --all-targets --features= -F= --all-features --no-default-features -v -vv --verbose -q --quiet -j= --jobs= --keep-going --locked
  --offline --frozen --message-format= --color= --profile= --exclude=`
const ofCargo = (more: string) => runs(`${cargo} ${more}`, { ...joinedValues, judgesRest: true })

/** Excludes `-exec`, `-toolexec`, `-vettool`, `-overlay`, `-modfile`, `-C`, `-o`, profiles, and flags of compilers and linkers. */
const goOptions = "-v -race -short -x -n -p= -tags= -trimpath -json -a"
const ofGo = (more: string) => runs(`${goOptions} ${more}`, { hasLongShorts: true, judgesRest: true })

/** Allows only operands below the current folder: another folder has another configuration, which is code. */
const below = (words: ReadonlyArray<Word>): boolean =>
  words.every((word) => isPlain(word) && !/^[/~]|(?:^|\/)\.\.(?:\/|$)/.test(word.text))

const builds: Readonly<Record<string, Usage>> = {
  "npm test": script,
  "npm t": script,
  "npm start": script,
  "npm run *": script,
  "npm run-script *": script,
  // `.npmrc` of the folder determines where npm writes its log.
  "npm ls": runs("--depth= --all -a --json --long -l --omit= --include= -g --global --parseable -p"),
  // A version manager may download and run the version that the folder requests.
  "npm --version": runs("", { operands: noOperands }),
  "pnpm test": script,
  "pnpm run *": script,
  "yarn test": script,
  "yarn run *": script,
  "bun test": script,
  "bun run *": script,
  "cargo build": ofCargo(""),
  "cargo check": ofCargo(""),
  "cargo clippy": ofCargo("-D= -W= -A= --no-deps"),
  "cargo doc": ofCargo("--no-deps --document-private-items"),
  "cargo fmt": ofCargo("--check"),
  "cargo test": ofCargo(
    "--doc --no-run --no-fail-fast --nocapture --no-capture --show-output --ignored --include-ignored --exact --test-threads= --list"
  ),
  "cargo --version": runs("", { operands: noOperands }),
  "go build": { ...ofGo(""), operands: below },
  "go vet": { ...ofGo(""), operands: below },
  "go list": { ...ofGo("-m -f= -deps -test -e"), operands: below },
  "go test": {
    ...ofGo(
      "-run= -skip= -count= -timeout= -bench= -benchmem -benchtime= -cover -covermode= -failfast -parallel= -list= -shuffle="
    ),
    operands: below
  },
  "go version": runs("", { operands: noOperands }),
  pytest: runs(
    `-x --exitfirst -v -vv -vvv --verbose -q --quiet -s -k= -m= --lf --last-failed --ff --failed-first --tb= --maxfail= -l --showlocals
    --co --collect-only --durations= -r= --no-header --no-summary --sw --stepwise --color=`,
    // `@file` reads more options from a file.
    { ...joinedValues, operands: below, judgesRest: true, refuses: /^@/ }
  )
}

const docker: Readonly<Record<string, Usage>> = {
  "docker ps": reads(
    "-a --all -q --quiet -n= --last= -l --latest --no-trunc -s --size --format= -f= --filter=",
    joinedValues
  ),
  "docker images": reads("-a --all -q --quiet --digests --no-trunc --format= -f= --filter=", joinedValues),
  "docker logs": reads("-f --follow --tail= -n= -t --timestamps --since= --until= --details", joinedValues),
  "docker inspect": reads("-f= --format= -s --size --type=", joinedValues),
  "docker version": reads("-f= --format=", { ...joinedValues, operands: noOperands }),
  "docker --version": reads("", { operands: noOperands })
}

// --- single-purpose programs ----------------------------------------------------------------------------------------------------

/** Accepts a script that prints lines, deletes them, or replaces text: without `e`, `w`, `r` and files. */
const sedScript = ({ isHome, pattern, text }: Word): boolean => {
  if (pattern !== undefined || isHome === true) return false
  if (/^(?:\d+|\$)(?:,(?:\d+|\$))?[pdq]$/.test(text)) return true
  const [, sign = ""] = /^s([/|,#:])/.exec(text) ?? []
  // Exactly three delimiters, so that only flags follow the last one, however brackets and quotes are read.
  if (sign === "" || /\n/.test(text) || text.split(sign).length !== 4) return false
  const end = text.lastIndexOf(sign)
  return !text.includes(`\\${sign}`) && /^[gip\d]*$/i.test(text.slice(end + 1)) && !/[mMeEwW]/.test(text.slice(end + 1))
}

/** Accepts only programs that print columns: awk can also run commands, write files and connect. */
const awkProgram =
  /^\{ *print(?: +(?:\$\d{1,3}|\$NF|NR|NF|"[\w :,.=/-]*")(?:(?: *, *| +)(?:\$\d{1,3}|\$NF|NR|NF|"[\w :,.=/-]*"))*)? *\}$/

/** Excludes the actions of `find` that run, delete or write. */
const find = `-H -L -P -name= -iname= -path= -ipath= -wholename= -regex= -iregex= -regextype= -type= -xtype= -maxdepth= -mindepth= -depth
  -size= -empty -mtime= -atime= -ctime= -mmin= -amin= -cmin= -newer= -newermt= -anewer= -cnewer= -perm= -user= -group= -uid= -gid= -nouser
  -nogroup -links= -inum= -samefile= -readable -writable -executable -print -print0 -printf= -ls -prune -quit -true -false -o -or
  -a -and -not -follow -xdev -mount -daystart -noleaf -ignore_readdir_race -lname= -ilname= -fstype=`

const grep = `-r -R -n -i -l -L -c -v -w -x -o -q -s -E -F -P -G -H -h -a -I -b -y -A= -B= -C= -m= -e= -f= --include= --exclude=
  --exclude-dir= --color? --colour? --line-number --ignore-case --no-ignore-case --recursive --dereference-recursive
  --files-with-matches --files-without-match --count --invert-match --word-regexp --line-regexp --only-matching --quiet --silent
  --no-messages --extended-regexp --fixed-strings --perl-regexp --basic-regexp --no-filename --with-filename --max-count=
  --after-context= --before-context= --context= --regexp= --text --binary-files= --byte-offset --null -Z --line-buffered`

/** Excludes `--pre`, `--hostname-bin` and `-z`, which run programs. */
const ripgrep = `-n -N -i -S -s -l -c -v -w -x -o -q -F -P -U -u -L -H -I -a -0 -p -. -e= -g= -t= -T= -A= -B= -C= -m= -M= -d= -r= -j= -E=
  --files --files-with-matches --files-without-match --line-number --no-line-number --ignore-case --smart-case --case-sensitive
  --count --count-matches --invert-match --word-regexp --line-regexp --only-matching --quiet --fixed-strings --multiline
  --multiline-dotall --hidden --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted --glob= --iglob= --type=
  --type-not= --after-context= --before-context= --context= --max-count= --max-depth= --max-columns= --max-columns-preview
  --max-filesize= --sort= --sortr= --color= --heading --no-heading --with-filename --no-filename --json --stats --trim --vimgrep
  --pcre2 --replace= --regexp= --column --no-column --no-messages --passthru --type-list --no-config --follow --text --null --pretty
  --one-file-system --encoding= --threads= --crlf --byte-offset --include-zero --version`

const alwaysReads = reads("any")

/** Excludes the root: the environments of other programs lie below it. */
const notRoot = (words: ReadonlyArray<Word>): boolean => words.every(({ text }) => !/^\/[/.]*$/.test(text))

const singlePrograms: Readonly<Record<string, Usage>> = {
  // No option of these programs writes, runs or connects.
  ...Object.fromEntries(
    `ls cat head tail wc nl tac rev cut paste comm join fold fmt expand unexpand tr od cksum md5sum sha1sum sha224sum sha256sum sha384sum
    sha512sum b2sum basename dirname realpath readlink stat du df pwd whoami id groups uname nproc arch uptime seq sleep true false :
    echo printenv free cmp type which column tty`
      .split(/\s+/)
      .map((name) => [name, alwaysReads])
  ),
  // The second operand is written.
  uniq: reads(
    "-c -d -D -u -i -z -f= -s= -w= --count --repeated --unique --ignore-case --skip-fields= --skip-chars= --check-chars=",
    {
      ...joinedValues,
      operands: (words) => words.length <= 1 && allPlain(words)
    }
  ),
  // Excludes `-o` (writes), `--compress-program` (runs), `-T` and `--files0-from`.
  sort: reads(
    `-n -r -u -f -h -V -g -M -R -b -d -i -c -C -s -z -m -k= -t= --numeric-sort --reverse --unique --ignore-case
    --human-numeric-sort --version-sort --general-numeric-sort --month-sort --key= --field-separator= --stable --check? --merge
    --ignore-leading-blanks --dictionary-order --parallel=`,
    joinedValues
  ),
  // Excludes `-l`, which runs pr.
  diff: reads(
    `-u -U= -c -C= -r -q -s -y -w -b -B -i -N -a -x= -W= -p -t -E -Z -d --brief --report-identical-files --unified? --context?
    --recursive --exclude= --side-by-side --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --new-file --text
    --color? --strip-trailing-cr --suppress-common-lines --width= --normal --minimal --label=`,
    { ...joinedValues, operands: notRoot }
  ),
  grep: reads(grep, { ...joinedValues, operands: notRoot }),
  egrep: reads(grep, { ...joinedValues, operands: notRoot }),
  fgrep: reads(grep, { ...joinedValues, operands: notRoot }),
  rg: reads(ripgrep, { ...joinedValues, operands: notRoot }),
  // Excludes `-x` and `-X` (run) and `-l` (runs ls).
  ...Object.fromEntries(
    ["fd", "fdfind"].map((name) => [
      name,
      reads(
        `-e= -t= -d= -H -I -u -E= -g -F -i -s -L -a -0 -p -1 -S= --extension= --type= --max-depth= --min-depth= --exact-depth=
        --hidden --no-ignore --no-ignore-vcs --exclude= --glob --regex --fixed-strings --ignore-case --case-sensitive --absolute-path
        --follow --full-path --print0 --max-results= --unrestricted --size= --changed-within= --changed-before= --color=`,
        joinedValues
      )
    ])
  ),
  find: reads(find, {
    hasLongShorts: true,
    judgesRest: true,
    operands: (words) => words.every(({ isHome, pattern }) => pattern !== "open" && isHome !== true)
  }),
  // Excludes `-C`, which writes, and `-z`, which runs programs.
  file: reads(
    "-b -i -I -L -h -k -r -0 -N --brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension"
  ),
  // Excludes `-o` and `-R`, which write.
  tree: reads(`-L= -a -d -f -l -x -i -p -s -h -u -g -D -F -n -C -J -I= -P= --dirsfirst --filesfirst --gitignore --prune --noreport
    --du --filelimit= --matchdirs --ignore-case --charset= --sort? --si --inodes`),
  // `-s` and an operand set the clock.
  date: reads("-u -R -I? -d= --utc --universal --date= --iso-8601? --rfc-3339= --rfc-email", {
    ...joinedValues,
    operands: (words) => words.every((word) => isPlain(word) && word.text.startsWith("+"))
  }),
  // `e` shows the environment of other programs. When ps cannot parse its arguments, it parses them again and reads every `-e` as that
  // `e`. So `-e` stands alone, and no value may be mistaken for option letters.
  ps: reads("-f -F -A -a -x -l -w -H -p= --sort= --forest --no-headers --pid= --ppid= --user=", {
    operands: (words) => words.every((word) => isPlain(word) && /^[auxfwljrT]+$/.test(word.text))
  }),
  ...Object.fromEntries(
    ["-e", "-ef", "-eF", "-aux"].map((word) => [`ps ${word}`, reads("", { operands: noOperands })])
  ),
  // With an operand these programs start another one (`arch` on macOS) or set a name.
  env: reads("", { operands: noOperands }),
  arch: reads("", { operands: noOperands }),
  hostname: reads("", { operands: noOperands }),
  "command -v": reads("", { operands: allPlain }),
  // Excludes `-v` and `-R`, which evaluate subscripts, and numeric comparisons.
  test: reads("-e= -f= -d= -s= -r= -w= -x= -L= -h= -n= -z=", {
    operands: noOperands,
    hasLongShorts: true,
    judgesRest: true
  }),
  // In bash, `-v` and `%n` assign to a variable. ksh evaluates numeric arguments.
  printf: reads("", {
    judgesRest: true,
    operands: ([format, ...rest]) =>
      format !== undefined &&
      isPlain(format) &&
      allPlain(rest) &&
      /^(?:[^%]|%%|%-?\d*[sbd])*$/.test(format.text) &&
      (!/%-?\d*d/.test(format.text) || rest.every(({ text }) => /^\d+$/.test(text)))
  }),
  sleep: reads("", {
    operands: (words) => words.every((word) => isPlain(word) && /^\d+(?:\.\d+)?[smhd]?$/.test(word.text))
  }),
  sed: reads("-n -E -r -u -s --quiet --silent --regexp-extended", {
    operands: ([first, ...rest]) =>
      first !== undefined && sedScript(first) && rest.every(({ pattern }) => pattern !== "open"),
    judgesRest: true
  }),
  // Operands with `=` are assignments, and those below /inet are connections.
  ...Object.fromEntries(
    ["awk", "gawk", "mawk", "nawk"].map((name) => [
      name,
      reads("-F=", {
        ...joinedValues,
        operands: ([program, ...rest]) =>
          program !== undefined &&
          isPlain(program) &&
          awkProgram.test(program.text) &&
          rest.every((word) => isPlain(word) && !word.text.includes("=")),
        judgesRest: true
      })
    ])
  ),
  jq: reads(
    `-r -c -n -s -e -S -M -C -j -a -R --raw-output --compact-output --null-input --slurp --exit-status --sort-keys --tab --indent=
    --raw-input --join-output --ascii-output --monochrome-output --color-output --arg= --argjson= --args --jsonargs`,
    {
      judgesRest: true,
      operands: ([filter, ...rest]) =>
        filter === undefined || (isPlain(filter) && rest.every(({ pattern }) => pattern !== "open"))
    }
  ),
  // Created paths lie in the workspace: operands are checked as paths.
  touch: usage("makes", "-a -c -m --no-create", { operands: allPlain, makesOperands: true, judgesRest: true }),
  mkdir: usage("makes", "-p -v --parents --verbose", { operands: allPlain, makesOperands: true, judgesRest: true })
}

/** Every call that a grant may cover whatever its other words are, by program and sub-command. */
export const usages: ReadonlyMap<string, Usage> = new Map(
  Object.entries({ ...git, ...builds, ...docker, ...singlePrograms })
)

/** Options allowed between `git` and its sub-command. */
export const gitGlobals: ReadonlySet<string> = new Set(["--no-pager", "-P", "--no-optional-locks"])

/**
 * Reserved words of the shell, and builtins that run or evaluate their words or change the meaning of later words (bash(1), "SHELL
 * BUILTIN COMMANDS"; dash(1)). They always ask. Harmless builtins are in the table.
 */
export const shellWords: ReadonlySet<string> = new Set(
  (
    "! { } [ [[ ]] (( )) if then elif else fi for while until do done case esac select in function time coproc " +
    "eval exec wait source . trap alias unalias builtin enable hash set shopt export declare typeset local readonly unset " +
    "read readarray mapfile getopts let bind complete compgen compopt jobs fc history caller chdir command dirs disown exit " +
    "return break continue fg bg help kill logout popd pushd shift suspend times ulimit umask cd test printf"
  ).split(" ")
)

/** Programs that run their operands, or run them as another user. They always ask. */
export const runners: ReadonlySet<string> = new Set(
  (
    "sh bash rbash dash zsh ksh mksh ash fish csh tcsh pwsh powershell cmd busybox toybox xargs parallel watch timeout nice ionice " +
    "chrt taskset stdbuf setsid script expect chroot unshare nsenter su runuser sudo doas pkexec ssh strace ltrace gdb " +
    "flock entr at batch crontab osascript sg newgrp prlimit setarch fakeroot systemd-run tmux screen unbuffer rlwrap " +
    "firejail bwrap proot runcon capsh start-stop-daemon dbus-run-session xvfb-run npx pnpx bunx uvx pipx corepack " +
    "env nohup killall pkill reboot shutdown"
  ).split(" ")
)

/** Sub-commands that download and run a program, at any position. They always ask. */
export const fetchers: Readonly<Record<string, ReadonlySet<string>>> = {
  npm: new Set(["exec", "x", "init", "innit", "create"]),
  pnpm: new Set(["dlx", "exec", "create"]),
  yarn: new Set(["dlx", "exec", "create"]),
  bun: new Set(["x", "exec", "create"]),
  uv: new Set(["run", "tool"])
}
