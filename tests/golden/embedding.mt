# The rows of a table for the tokens of a text, and the table again for the scores of the next token.
data {
  train  = text("input.txt")
  window : class[65][33]
}

model {
  tokens = slice(window, 0, begin = 0, end = 32)
  target = slice(window, 0, begin = 1, end = 33)
  table  = weight([65, 64], init = normal(0, 0.02))
  x      = gather(table, tokens) + weight([32, 64])
  scores = matmul(relu(x), table, transpose_b = true)
}

train {
  loss      = cross_entropy(scores, target)
  optimizer = sgd(0.1)
  batch     = 256
}
