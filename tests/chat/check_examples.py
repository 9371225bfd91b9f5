#!/usr/bin/env python3
"""Checks the digests that were published with the worked examples: check_examples.py FILE."""
import hashlib
import json
import sys

PUBLISHED = {
    'tools block': (990, '0f882fa87adcf6d7e1e4c97e20c72ebcb1d15ca2463e7bcef3078015c8a900d9'),
    'E7': (1902, '1bd5712a13dee5bcda6cac172213f436fed4183d145acb6de88718832a402eba'),
}

with open(sys.argv[1], encoding='utf-8') as file:
    data = json.load(file)
texts = {example['name']: example['prompt'] for example in data['examples']}
texts['tools block'] = data['tools_block']
wrong = 0
for name, published in PUBLISHED.items():
    text = texts[name].encode('utf-8')
    found = (len(text), hashlib.sha256(text).hexdigest())
    if found != published:
        print(f'{name}: {found[0]} bytes, sha256 {found[1]}', file=sys.stderr)
        wrong = 1
sys.exit(wrong)
