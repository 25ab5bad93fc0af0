data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  a = nn.ReLU(x)
  b = torch.nn.functional.log_softmax(x)
  c = tf.nothing(x)
  d = x.nothing.more(x)
  y = linear(x, 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = adam(1e-3)
}
