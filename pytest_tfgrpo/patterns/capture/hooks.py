"""Texts to copy: what calls ``tfgrpo learn capture`` at the moment that work is done."""

from __future__ import annotations

from pytest_tfgrpo.core.python.dataclass import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptureHook:
    """A text, and the file that it belongs in."""

    path: str
    about: str
    text: str


_STEPS = """\
The user has approved the work that you just finished, and it is not committed yet. Capture it:

1. Write what the user asked for, in their words, to the file that `mktemp` names, and the criteria by which
   it is done to a second one. Write no file into the repository.
2. Run in the repository:

   tfgrpo learn capture --approver "$ARGUMENTS" --tests-by agent \\
     --prompt PROMPT_FILE --criteria CRITERIA_FILE \\
     --history "$({newest})"

   The approver is the user: ask for a name if there is none after `--approver`. Write `--tests-by person` if
   the user wrote the tests.
3. Tell the user what it printed. Where it refuses the work, say why, and change nothing on your own.

If this was your own idea and nobody approved it, add `--trigger self` and name yourself as the approver.
"""
HOOKS = {
    "claude": CaptureHook(
        path=".claude/commands/learn.md",
        about="command of Claude Code: /learn NAME",
        text="---\ndescription: Capture the approved work for learning\nargument-hint: NAME of who approved\n"
        "allowed-tools: Bash(tfgrpo learn capture:*), Bash(mktemp:*), Write\n---\n\n"
        + _STEPS.format(
            newest="ls -t ~/.claude/projects/\"$(pwd | tr -c 'A-Za-z0-9\\n' '-')\"/*.jsonl | head -n 1",
        ),
    ),
    "codex": CaptureHook(
        path="~/.codex/prompts/learn.md",
        about="prompt of Codex: /prompts:learn NAME",
        text="---\ndescription: Capture the approved work for learning\nargument-hint: NAME\n---\n\n"
        + _STEPS.format(newest="ls -t ~/.codex/sessions/*/*/*/rollout-*.jsonl | head -n 1"),
    ),
    "git": CaptureHook(
        path=".git/hooks/post-merge",
        about="hook of git, made executable: each merge commit that you make here",
        text="""\
#!/bin/sh
# Captures what a merge brought that was made here; those of a pull where they are made.
git rev-parse -q --verify 'HEAD^2' >/dev/null || exit 0
[ "$(git log -1 --format=%ce)" = "$(git config user.email)" ] || exit 0
tfgrpo learn capture --merge HEAD --trigger merge --approver "$(git log -1 --format=%ce)" ||
  echo "the merge stands; only its capture failed" >&2
""",
    ),
    "ci": CaptureHook(
        path=".github/workflows/learn.yml",
        about="job of GitHub Actions: each merge that a push brings",
        text="""\
name: learn
on:
  push:
    branches: [main]
permissions:
  contents: read
jobs:
  capture:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install pytest-tfgrpo
      - name: Capture and prove what the merges brought
        env:
          BEFORE: ${{ github.event.before }}
          APPROVER: ${{ github.actor }}
        run: |
          git cat-file -e "$BEFORE" 2>/dev/null || BEFORE=HEAD^
          for merge in $(git rev-list --first-parent --merges --reverse "$BEFORE..HEAD"); do
            tfgrpo learn capture --merge "$merge" --trigger merge --approver "$APPROVER" || true
          done
          tfgrpo learn work
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: learning
          path: |
            out/*/learning
            .agent/patterns/candidates
          include-hidden-files: true
""",
    ),
}
