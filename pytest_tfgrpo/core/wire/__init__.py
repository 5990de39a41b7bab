"""Records as JSON and back: conversion, schemas, stamps, and values from outside made fit to keep."""
