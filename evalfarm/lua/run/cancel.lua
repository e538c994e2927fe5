-- Nothing more is handed out or claimed.
if exists() then
  stop('cancelled')
end
