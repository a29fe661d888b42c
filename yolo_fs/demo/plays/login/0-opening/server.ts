import express from "express";

export const app = express();
