"""A program that is an MCP server, well or badly, without the SDK."""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = r"""
import json, os, signal, subprocess, sys, time

mode = sys.argv[1]
if mode == "mute":
    time.sleep(1000)
if mode == "noise":
    print("Welcome to the noisy server!", flush=True)
if mode == "chatter":
    while True:
        print("x" * 100)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", sys.argv[2]]) if mode == "child" else None
count, calls = len(os.listdir(".")), 0
if mode == "changing":
    open(sys.argv[2], "a").write("x")
    count = len(open(sys.argv[2]).read())
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, answer = request["method"], None
    if method == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": mode, "version": "1"}}
    elif method == "tools/list":
        names = ["say", *(f"tool{n}" for n in range(count if mode == "changing" else 0))]
        answer = {"tools": [{"name": n, "description": "Say it.", "inputSchema": SCHEMA} for n in names]}
    elif method == "tools/call":
        calls += 1
        text = json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "calls": calls, "argv": sys.argv[2:]})
        if mode == "hang":
            time.sleep(1000)
        if mode == "die":
            print("out of memory", file=sys.stderr)
            os._exit(9)
        if mode == "mad":
            answer = {"content": "no list"}
        elif mode == "megabytes":
            answer = {"content": [{"type": "text", "text": "x" * int(sys.argv[2])}]}
        else:
            answer = {"content": [{"type": "text", "text": text}]}
    out = {"jsonrpc": "2.0", "id": request["id"]}
    out |= {"result": answer} if answer is not None else {"error": {"code": -32601, "message": "unknown"}}
    text = json.dumps(out)
    if mode == "unreadable" and method == "tools/call":
        text = text.replace('"text": "', '"text": "\\ud800')
    print(text, flush=True)
if mode == "stubborn":
    time.sleep(1000)
"""


def program(root: Path, mode: str, *words: str) -> str:
    """Write the program into `root`; return the command of a server that behaves as `mode` says."""
    (root / "mcp_server.py").write_text(PROGRAM)
    return " ".join([sys.executable, "mcp_server.py", mode, *words])
